#include "engine/guide/minimum_guidance.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace tgi::guide {
namespace {

class MinimumGuide final : public TokenGuide {
 public:
  MinimumGuide(std::unique_ptr<TokenGuide> inner,
               std::shared_ptr<const Vocabulary> vocabulary,
               int64_t min_tokens)
      : inner_(std::move(inner)), vocabulary_(std::move(vocabulary)), min_tokens_(min_tokens) {}

  bool fill_mask(std::span<uint32_t> mask, int64_t max_tokens) override {
    if (inner_ == nullptr) {
      std::ranges::fill(mask, ~0U);  // bits behind the vocabulary are nobody's
    } else if (!inner_->fill_mask(mask, max_tokens)) {
      return false;
    }
    if (!is_too_short()) return true;
    const std::vector<uint32_t> with_ends(mask.begin(), mask.end());
    for (const int32_t id : vocabulary_->end_token_ids()) {
      const auto at = static_cast<uint32_t>(id);
      if (at / 32 < mask.size()) mask[at / 32] &= ~(1U << (at % 32));
    }
    const bool is_empty = std::ranges::all_of(mask, [](uint32_t word) { return word == 0; });
    if (is_empty) std::ranges::copy(with_ends, mask.begin());
    return true;
  }

  void accept(int32_t token_id) override {
    if (inner_ != nullptr) inner_->accept(token_id);
    ++num_tokens_;
  }

  // An end token that nothing else could be in the place of is not looked for: it ends the answer,
  // and nothing is drafted behind it.
  bool try_accept(int32_t token_id) override {
    if (is_too_short() && vocabulary_->is_end_token(token_id)) return false;
    if (inner_ != nullptr && !inner_->try_accept(token_id)) return false;
    ++num_tried_;
    return true;
  }

  void rollback() override {
    if (inner_ != nullptr) inner_->rollback();
    num_tried_ = 0;
  }

  std::span<const int32_t> forced_tokens() override {
    return inner_ == nullptr ? std::span<const int32_t>() : inner_->forced_tokens();
  }

  bool is_over() override { return inner_ != nullptr && inner_->is_over(); }

 private:
  bool is_too_short() const { return num_tokens_ + num_tried_ < min_tokens_; }

  const std::unique_ptr<TokenGuide> inner_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const int64_t min_tokens_;
  int64_t num_tokens_ = 0;
  int64_t num_tried_ = 0;
};

class MinimumGuidance final : public Guidance {
 public:
  MinimumGuidance(std::shared_ptr<const Guidance> inner,
                  std::shared_ptr<const Vocabulary> vocabulary,
                  int64_t min_tokens)
      : inner_(std::move(inner)), vocabulary_(std::move(vocabulary)), min_tokens_(min_tokens) {}

  std::unique_ptr<TokenGuide> start() const override {
    return std::make_unique<MinimumGuide>(inner_ == nullptr ? nullptr : inner_->start(),
                                          vocabulary_, min_tokens_);
  }
  int64_t num_enough_tokens() const override {
    return inner_ == nullptr ? 0 : inner_->num_enough_tokens();
  }

 private:
  const std::shared_ptr<const Guidance> inner_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const int64_t min_tokens_;
};

}  // namespace

std::shared_ptr<const Guidance> with_minimum(std::shared_ptr<const Guidance> inner,
                                             std::shared_ptr<const Vocabulary> vocabulary,
                                             int64_t min_tokens) {
  return std::make_shared<MinimumGuidance>(std::move(inner), std::move(vocabulary), min_tokens);
}

}  // namespace tgi::guide
