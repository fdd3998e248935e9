// Guidance whose masks depend on every token before: after tokens of an even sum (of ids) only even
// ids may follow, after others only odd ones, and of those each third is barred.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/guide/token_guide.h"

namespace tgi {

class ParityGuide final : public TokenGuide {
 public:
  explicit ParityGuide(int32_t first_id, int32_t last_id) : first_(first_id), last_(last_id) {}

  static bool allows(const std::vector<int32_t>& taken, int32_t id) {
    const int32_t sum = std::accumulate(taken.begin(), taken.end(), 0);
    return id % 2 == sum % 2 && id % 3 != sum % 3;
  }

  bool fill_mask(std::span<uint32_t> mask, int64_t /*max_tokens*/) override {
    std::fill(mask.begin(), mask.end(), 0U);
    bool any = false;
    for (int32_t id = first_; id <= last_; ++id) {
      if (!allows(taken_, id)) continue;
      mask[static_cast<size_t>(id) / 32] |= 1U << (id % 32);
      any = true;
    }
    return any;
  }
  void accept(int32_t token_id) override { taken_.push_back(token_id); }
  bool try_accept(int32_t token_id) override {
    if (!allows(taken_, token_id) || token_id < first_ || token_id > last_) return false;
    taken_.push_back(token_id);
    ++num_tried_;
    return true;
  }
  void rollback() override {
    taken_.resize(taken_.size() - num_tried_);
    num_tried_ = 0;
  }
  bool is_over() override { return false; }

 private:
  const int32_t first_;
  const int32_t last_;
  std::vector<int32_t> taken_;
  size_t num_tried_ = 0;
};

class ParityGuidance final : public Guidance {
 public:
  ParityGuidance(int32_t first_id, int32_t last_id) : first_(first_id), last_(last_id) {}
  std::unique_ptr<TokenGuide> start() const override {
    return std::make_unique<ParityGuide>(first_, last_);
  }
  int64_t num_enough_tokens() const override { return 1; }

 private:
  const int32_t first_;
  const int32_t last_;
};

}  // namespace tgi
