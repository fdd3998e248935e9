#include "engine/cpu/expert_routes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tgi {

ExpertRoutes::ExpertRoutes(int32_t num_experts,
                           int32_t max_experts_per_token,
                           int32_t max_batch_tokens)
    : num_experts_(num_experts),
      choice_(static_cast<size_t>(max_batch_tokens) * static_cast<size_t>(num_experts)),
      expert_(static_cast<size_t>(max_batch_tokens) * static_cast<size_t>(max_experts_per_token)),
      weight_(expert_.size()),
      row_of_(expert_.size()),
      token_of_(expert_.size()),
      first_row_(static_cast<size_t>(num_experts) + 1) {}

int64_t ExpertRoutes::bytes(const SlotLayout& layout) {
  const int64_t routed = int64_t{layout.max_batch_tokens} * layout.experts_per_token;
  return int64_t{layout.max_batch_tokens} * layout.num_experts * int64_t{sizeof(float)} +
         routed * int64_t{3 * sizeof(int32_t) + sizeof(float)} +
         (layout.num_experts + int64_t{1}) * int64_t{sizeof(int64_t)};
}

void ExpertRoutes::begin(const RouteRule& rule, int64_t num_tokens) {
  rule_ = rule;
  num_tokens_ = num_tokens;
}

void ExpertRoutes::keep_best_groups(float* choice) const {
  const int32_t size = num_experts_ / rule_.num_groups;
  const auto goodness = [&](int32_t group) {
    const float* const begin = choice + group * size;
    float best = -std::numeric_limits<float>::infinity();
    float second = best;
    for (int32_t i = 0; i < size; ++i) {
      second = std::max(second, std::min(best, begin[i]));
      best = std::max(best, begin[i]);
    }
    return rule_.group_best > 1 && size > 1 ? best + second : best;
  };
  // A group stays when fewer than top_groups are better, or as good and before it.
  const auto is_kept = [&](int32_t group) {
    int32_t before = 0;
    const float own = goodness(group);
    for (int32_t other = 0; other < rule_.num_groups; ++other) {
      const float theirs = goodness(other);
      if (theirs > own || (theirs == own && other < group)) ++before;
    }
    return before < rule_.top_groups;
  };
  uint64_t kept = 0;  // num_groups <= 64
  for (int32_t group = 0; group < rule_.num_groups; ++group) {
    if (is_kept(group)) kept |= uint64_t{1} << group;
  }
  for (int32_t group = 0; group < rule_.num_groups; ++group) {
    if ((kept >> group & 1U) != 0) continue;
    std::fill_n(choice + group * size, size, -std::numeric_limits<float>::infinity());
  }
}

// Of `experts`, in the order in which they were chosen: their shares take the place of their
// logits.
void ExpertRoutes::mix_sparsely(const int32_t* experts,
                                float* shares,
                                float* logits,
                                Exp exp) const {
  for (int32_t i = 0; i < rule_.top_k; ++i) {
    const float own = logits[experts[i]];
    float sum = 0.0F;
    for (int32_t e = 0; e < num_experts_; ++e) {
      if (std::find(experts, experts + i, e) != experts + i) continue;
      const float larger = std::max(std::abs(logits[e]), own);
      if ((own - logits[e]) / larger > 2.0F * rule_.mixer_width) continue;
      const float below = logits[e] - own;
      float power = 0.0F;
      exp(&below, &power, 1);
      sum += power;
    }
    shares[i] = 1.0F / sum;
  }
  for (int32_t i = 0; i < rule_.top_k; ++i) logits[experts[i]] = shares[i];
}

// Of `experts`, in the place of their logits.
void ExpertRoutes::take_sigmoids(const int32_t* experts, float* logits, Exp exp) const {
  for (int32_t i = 0; i < rule_.top_k; ++i) {
    const float below = -logits[experts[i]];
    float power = 0.0F;
    exp(&below, &power, 1);
    logits[experts[i]] = 1.0F / (1.0F + power);
  }
}

void ExpertRoutes::choose(int64_t token, float* scores, const float* choice_bias, Exp exp) {
  float* const choice = choice_.data() + token * num_experts_;
  for (int32_t e = 0; e < num_experts_; ++e) {
    const float value = scores[e] + (choice_bias == nullptr ? 0.0F : choice_bias[e]);
    // A score that is not a number loses; the row's result is not a number all the same.
    choice[e] = std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;
  }
  if (rule_.num_groups > 1) keep_best_groups(choice);
  int32_t* const experts = expert_.data() + token * rule_.top_k;
  for (int32_t i = 0; i < rule_.top_k; ++i) {
    int32_t best = -1;
    for (int32_t e = 0; e < num_experts_; ++e) {
      const bool is_taken = std::find(experts, experts + i, e) != experts + i;
      if (!is_taken && (best < 0 || choice[e] > choice[best])) best = e;
    }
    experts[i] = best;
  }
  float* const weights = weight_.data() + token * rule_.top_k;
  if (rule_.score == RouterScore::kSparseMixer) mix_sparsely(experts, weights, scores, exp);
  if (rule_.score == RouterScore::kSigmoidOfChosen) take_sigmoids(experts, scores, exp);
  std::sort(experts, experts + rule_.top_k);
  weigh(token, scores);
}

void ExpertRoutes::take(int64_t token, const int32_t* experts, const float* scores) {
  std::copy_n(experts, rule_.top_k, expert_.begin() + token * rule_.top_k);
  weigh(token, scores);
}

// The experts of the token are known.
void ExpertRoutes::weigh(int64_t token, const float* scores) {
  const int32_t* const experts = expert_.data() + token * rule_.top_k;
  float* const weights = weight_.data() + token * rule_.top_k;
  float sum = 0.0F;
  for (int32_t i = 0; i < rule_.top_k; ++i) {
    weights[i] = scores[experts[i]];
    sum += weights[i];
  }
  // As DeepSeek's code does: scores of a sigmoid may all be zero.
  const float factor = rule_.normalises ? rule_.scale / std::max(sum, 1e-20F) : rule_.scale;
  for (int32_t i = 0; i < rule_.top_k; ++i) weights[i] *= factor;
}

void ExpertRoutes::scale(int64_t token, const float* expert_scale) {
  for (int64_t i = token * rule_.top_k; i < (token + 1) * rule_.top_k; ++i) {
    const auto at = static_cast<size_t>(i);
    weight_[at] *= expert_scale[expert_[at]];
  }
}

void ExpertRoutes::finish() {
  std::fill(first_row_.begin(), first_row_.end(), 0);
  const auto count = static_cast<size_t>(num_rows());
  for (size_t i = 0; i < count; ++i) ++first_row_[static_cast<size_t>(expert_[i]) + 1];
  for (size_t e = 1; e < first_row_.size(); ++e) first_row_[e] += first_row_[e - 1];
  // first_row_[e] walks to the end of expert e, which is where the next one begins.
  for (size_t i = 0; i < count; ++i) {
    const int64_t row = first_row_[static_cast<size_t>(expert_[i])]++;
    row_of_[i] = static_cast<int32_t>(row);
    token_of_[static_cast<size_t>(row)] = static_cast<int32_t>(i) / rule_.top_k;
  }
  std::copy_backward(first_row_.begin(), first_row_.end() - 1, first_row_.end());
  first_row_[0] = 0;
}

}  // namespace tgi
