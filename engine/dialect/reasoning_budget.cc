#include "engine/dialect/reasoning_budget.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "engine/dialect/marked_text.h"

namespace tgi::dialect {
namespace {

class BudgetedGuide final : public TokenGuide {
 public:
  BudgetedGuide(std::unique_ptr<TokenGuide> inner,
                std::shared_ptr<const guide::Vocabulary> vocabulary,
                const ReasoningBudget& budget)
      : inner_(std::move(inner)),
        vocabulary_(std::move(vocabulary)),
        budget_(budget),
        state_{.is_reasoning = budget.has_begun} {}

  bool fill_mask(std::span<uint32_t> mask, int64_t max_tokens) override {
    if (!inner_->fill_mask(mask, max_tokens)) return false;
    if (!state_.is_reasoning || state_.num_tokens < budget_.max_tokens) return true;
    const std::optional<int32_t> next = next_of_end();
    if (!next) return true;
    const auto word = static_cast<size_t>(*next) / 32;
    const uint32_t bit = 1U << (static_cast<uint32_t>(*next) % 32);
    // Not in the middle of a character, nor where the inner guide is ending it its own way.
    if ((mask[word] & bit) == 0) return true;
    std::fill(mask.begin(), mask.end(), 0);
    mask[word] = bit;
    return true;
  }

  void accept(int32_t token_id) override {
    inner_->accept(token_id);
    note(token_id);
  }

  bool try_accept(int32_t token_id) override {
    if (!before_tries_) before_tries_ = state_;
    if (!inner_->try_accept(token_id)) return false;
    note(token_id);
    return true;
  }

  void rollback() override {
    inner_->rollback();
    if (before_tries_) state_ = *std::exchange(before_tries_, std::nullopt);
  }

  // Where the budget may end the reasoning, what follows is its own business.
  std::span<const int32_t> forced_tokens() override {
    return state_.is_reasoning ? std::span<const int32_t>() : inner_->forced_tokens();
  }

  bool is_over() override { return inner_->is_over(); }

 private:
  struct State {
    bool is_reasoning = false;
    int64_t num_tokens = 0;  // of reasoning
    std::string tail{};
  };

  // The end of what was written is enough to know its marks by.
  void note(int32_t token_id) {
    auto& [is_reasoning, num_tokens, tail] = state_;
    if (is_reasoning) ++num_tokens;
    const std::string_view bytes = vocabulary_->bytes(token_id);
    tail += bytes.empty() ? marked_token(vocabulary_->special_name(token_id)) : bytes;
    size_t longest = 0;
    for (const std::string& mark : is_reasoning ? budget_.ends : budget_.begins) {
      longest = std::max(longest, mark.size());
      const size_t at = mark.empty() ? std::string::npos : tail.find(mark);
      if (at == std::string::npos) continue;
      tail.erase(0, at + mark.size());
      is_reasoning = !is_reasoning;
      return;
    }
    if (tail.size() > longest) tail.erase(0, tail.size() - longest);
  }

  // The token with which the mark goes on from what is there of it.
  std::optional<int32_t> next_of_end() const {
    const std::string& end = budget_.ends.front();
    const std::string_view rest = std::string_view(end).substr(length_of_begun(state_.tail, end));
    if (rest.front() == kTokenBorder) {
      return vocabulary_->special_id(rest.substr(1, rest.find(kTokenBorder, 1) - 1));
    }
    const auto [length, id] = vocabulary_->longest_prefix(rest.substr(0, rest.find(kTokenBorder)));
    return length == 0 ? std::nullopt : std::optional(id);
  }

  const std::unique_ptr<TokenGuide> inner_;
  const std::shared_ptr<const guide::Vocabulary> vocabulary_;
  const ReasoningBudget& budget_;
  State state_;
  std::optional<State> before_tries_;
};

class BudgetedGuidance final : public Guidance {
 public:
  BudgetedGuidance(std::shared_ptr<const Guidance> inner,
                   std::shared_ptr<const guide::Vocabulary> vocabulary,
                   ReasoningBudget budget)
      : inner_(std::move(inner)), vocabulary_(std::move(vocabulary)), budget_(std::move(budget)) {}

  std::unique_ptr<TokenGuide> start() const override {
    return std::make_unique<BudgetedGuide>(inner_->start(), vocabulary_, budget_);
  }
  int64_t num_enough_tokens() const override { return inner_->num_enough_tokens(); }

 private:
  const std::shared_ptr<const Guidance> inner_;
  const std::shared_ptr<const guide::Vocabulary> vocabulary_;
  const ReasoningBudget budget_;
};

}  // namespace

std::shared_ptr<const Guidance> with_reasoning_budget(
    std::shared_ptr<const Guidance> guidance,
    std::shared_ptr<const guide::Vocabulary> vocabulary,
    ReasoningBudget budget) {
  return std::make_shared<BudgetedGuidance>(std::move(guidance), std::move(vocabulary),
                                            std::move(budget));
}

}  // namespace tgi::dialect
