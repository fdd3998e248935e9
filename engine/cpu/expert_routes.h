// Which experts the tokens of a step go to, and where their rows stand when they are sorted by
// expert (RouteArgs in engine/device/backend.h).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/device/backend.h"

namespace tgi {

class ExpertRoutes {
 public:
  ExpertRoutes() = default;
  ExpertRoutes(int32_t num_experts, int32_t max_experts_per_token, int32_t max_batch_tokens);
  static int64_t bytes(const SlotLayout& layout);

  // Begins the choice for `num_tokens` tokens.
  void begin(const RouteRule& rule, int64_t num_tokens);
  // out[i] = exp(x[i]), of the kernels that are used.
  using Exp = void (*)(const float* x, float* out, int64_t count);
  // Chooses for one token; any thread, tokens apart. `scores` (num_experts) are changed; where
  // experts are chosen by the logit alone they are the logits.
  void choose(int64_t token, float* scores, const float* choice_bias, Exp exp);
  // Instead of choose: the token's experts (top_k), in the order in which they are given. The
  // scores are not changed.
  void take(int64_t token, const int32_t* experts, const float* scores);
  // After either: each weight times that of its expert.
  void scale(int64_t token, const float* expert_scale);
  // Sorts the rows by expert.
  void finish();

  int32_t num_experts() const { return num_experts_; }
  int32_t num_matrices() const { return num_experts_ - rule_.num_identity; }
  // Whether it is that of an expert without a matrix, which gives what it reads.
  bool is_identity(int64_t row) const { return row >= first_row(num_matrices()); }
  int32_t top_k() const { return rule_.top_k; }
  int64_t num_rows() const { return num_tokens_ * rule_.top_k; }
  // Rows [first_row(e), first_row(e + 1)) are those of expert e.
  int64_t first_row(int32_t expert) const { return first_row_[static_cast<size_t>(expert)]; }
  int64_t token_of(int64_t row) const { return token_of_[static_cast<size_t>(row)]; }

  // Of a token's experts the i-th: in ascending order those that were chosen, in theirs those that
  // were given.
  struct Chosen {
    int64_t row = 0;
    float weight = 0.0F;
  };
  Chosen chosen(int64_t token, int32_t i) const {
    const auto at = static_cast<size_t>(token * rule_.top_k + i);
    return {.row = row_of_[at], .weight = weight_[at]};
  }

 private:
  void weigh(int64_t token, const float* scores);
  void keep_best_groups(float* choice) const;
  void mix_sparsely(const int32_t* experts, float* shares, float* logits, Exp exp) const;
  void take_sigmoids(const int32_t* experts, float* logits, Exp exp) const;

  int32_t num_experts_ = 0;
  RouteRule rule_;
  int64_t num_tokens_ = 0;
  std::vector<float> choice_;       // (max_batch_tokens, num_experts): what is chosen by
  std::vector<int32_t> expert_;     // (max_batch_tokens * top_k), of each token as `chosen` says
  std::vector<float> weight_;       // as expert_
  std::vector<int32_t> row_of_;     // as expert_
  std::vector<int32_t> token_of_;   // (max_batch_tokens * top_k), by row
  std::vector<int64_t> first_row_;  // (num_experts + 1)
};

}  // namespace tgi
