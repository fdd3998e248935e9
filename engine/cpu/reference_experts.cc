// ReferenceDevice: experts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/plain_matrix.h"
#include "engine/cpu/reference_device.h"
#include "engine/cpu/reference_values.h"

namespace tgi {
namespace {

// What a logit is worth; a softmax divides by the sum of all.
double router_score(RouterScore kind, double logit, double highest) {
  if (kind == RouterScore::kSigmoid) return sigmoid(logit);
  if (kind == RouterScore::kSqrtSoftplus) return std::sqrt(softplus(logit));
  return std::exp(logit - highest);
}

std::vector<double> router_scores(const RouteArgs& args, int64_t token) {
  const auto count = static_cast<size_t>(args.logits.cols);
  const float* const logits = row_of(args.logits, token);
  std::vector<double> out(logits, logits + count);
  if (args.rule.scores_chosen()) return out;
  const double highest = *std::ranges::max_element(out);
  double sum = 0.0;
  for (double& x : out) {
    x = router_score(args.rule.score, x, highest);
    sum += x;
  }
  if (args.rule.score == RouterScore::kSoftmax) {
    for (double& x : out) x /= sum;
  }
  return out;
}

// The indices of the `count` largest, of two equal ones the first.
std::vector<size_t> largest(const std::vector<double>& values, int32_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return values[a] > values[b]; });
  order.resize(static_cast<size_t>(count));
  return order;
}

void leave_best_groups(const RouteRule& rule, std::vector<double>& choice) {
  const size_t size = choice.size() / static_cast<size_t>(rule.num_groups);
  std::vector<double> goodness;
  for (size_t begin = 0; begin < choice.size(); begin += size) {
    const std::vector<double> group(choice.begin() + static_cast<std::ptrdiff_t>(begin),
                                    choice.begin() + static_cast<std::ptrdiff_t>(begin + size));
    double sum = 0.0;
    const auto best = std::min(rule.group_best, static_cast<int32_t>(size));
    for (const size_t i : largest(group, best)) sum += group[i];
    goodness.push_back(sum);
  }
  std::vector<bool> is_kept(goodness.size());
  for (const size_t group : largest(goodness, rule.top_groups)) is_kept[group] = true;
  for (size_t e = 0; e < choice.size(); ++e) {
    if (!is_kept[e / size]) choice[e] = -std::numeric_limits<double>::infinity();
  }
}

// The shares of those chosen, in their order, in the place of their logits.
void mix_sparsely(const RouteRule& rule,
                  const std::vector<size_t>& chosen,
                  std::vector<double>& logits) {
  std::vector<double> left = logits;
  for (const size_t e : chosen) {
    double sum = 0.0;
    for (const double other : left) {
      const double larger = std::max(std::abs(other), logits[e]);
      const bool is_far =
          (logits[e] - other) / larger > 2.0 * static_cast<double>(rule.mixer_width);
      if (!is_far && std::isfinite(other)) sum += std::exp(other - logits[e]);
    }
    left[e] = -std::numeric_limits<double>::infinity();
    logits[e] = 1.0 / sum;
  }
}

}  // namespace

std::vector<size_t> ReferenceDevice::taken_experts(const RouteArgs& args, int64_t token) const {
  const int32_t id = slots_->resolve(batch_->token_ids[static_cast<size_t>(token)]);
  const int32_t* const experts =
      args.experts_by_token + int64_t{id < args.num_ids ? id : 0} * args.rule.top_k;
  return {experts, experts + args.rule.top_k};
}

void ReferenceDevice::route(const RouteArgs& args) {
  TGI_CHECK(args.experts_by_token == nullptr || !args.rule.scores_chosen());
  routes_.clear();
  num_matrices_ = static_cast<int32_t>(args.logits.cols) - args.rule.num_identity;
  for (int64_t token = 0; token < args.logits.rows; ++token) {
    std::vector<double> scores = router_scores(args, token);
    std::vector<double> choice = scores;
    for (size_t e = 0; e < choice.size() && args.choice_bias != nullptr; ++e) {
      choice[e] += static_cast<double>(args.choice_bias->as<const float>()[e]);
    }
    if (args.rule.num_groups > 1) leave_best_groups(args.rule, choice);
    const std::vector<size_t> chosen = args.experts_by_token != nullptr
                                           ? taken_experts(args, token)
                                           : largest(choice, args.rule.top_k);
    if (args.rule.score == RouterScore::kSparseMixer) mix_sparsely(args.rule, chosen, scores);
    for (const size_t e : chosen) {
      if (args.rule.score == RouterScore::kSigmoidOfChosen) scores[e] = sigmoid(scores[e]);
    }
    double sum = 0.0;
    for (const size_t e : chosen) sum += scores[e];
    for (const size_t e : chosen) {
      double weight = args.rule.normalises ? scores[e] / std::max(sum, 1e-20) : scores[e];
      if (args.expert_scale != nullptr)
        weight *= at(*args.expert_scale, 0, static_cast<int64_t>(e));
      routes_.push_back({.expert = static_cast<int32_t>(e),
                         .token = token,
                         .weight = weight * static_cast<double>(args.rule.scale)});
    }
  }
  std::ranges::stable_sort(routes_, {}, &Route::expert);
}

void ReferenceDevice::expert_matmul(const ExpertMatmulArgs& args) {
  for (size_t i = 0; i < routes_.size(); ++i) {
    if (routes_[i].expert >= num_matrices_) continue;
    const auto row = static_cast<int64_t>(i);
    const ExpertWeight& expert = args.experts[static_cast<size_t>(routes_[i].expert)];
    Tensor x = args.x.first_rows(1);
    x.data = mutable_row_of(args.x, args.x_is_routed ? row : routes_[i].token);
    Tensor out = args.out.first_rows(1);
    out.data = mutable_row_of(args.out, row);
    matmul({.x = x, .w = expert.w, .bias = expert.bias, .out = out});
  }
}

void ReferenceDevice::weigh_experts(const WeighArgs& args) {
  for (size_t i = 0; i < routes_.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    for (int64_t col = 0; col < args.x.cols; ++col) {
      put(args.x, row, col, at(args.x, row, col) * routes_[i].weight);
    }
  }
}

void ReferenceDevice::combine_experts(const CombineArgs& args) {
  for (int64_t token = 0; token < args.out.rows; ++token) {
    std::vector<double> sum(static_cast<size_t>(args.out.cols));
    for (size_t i = 0; i < routes_.size(); ++i) {
      if (routes_[i].token != token) continue;
      const bool is_identity = routes_[i].expert >= num_matrices_;
      if (is_identity && args.given == nullptr) continue;
      const float* const row =
          is_identity ? row_of(*args.given, token) : row_of(args.x, static_cast<int64_t>(i));
      for (size_t col = 0; col < sum.size(); ++col) {
        sum[col] += (args.is_weighted ? 1.0 : routes_[i].weight) * static_cast<double>(row[col]);
      }
    }
    for (size_t col = 0; col < sum.size(); ++col) {
      mutable_row_of(args.out, token)[col] = static_cast<float>(sum[col]);
    }
  }
}

}  // namespace tgi
