#include "engine/guide/grammar_guidance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "base/error.h"
#include "engine/guide/matcher.h"

namespace tgi::guide {
namespace {

class MatcherGuide final : public TokenGuide {
 public:
  explicit MatcherGuide(Matcher matcher) : matcher_(std::move(matcher)) {}

  bool fill_mask(std::span<uint32_t> mask, int64_t max_tokens) override {
    matcher_.fill_mask(mask, max_tokens);
    return std::any_of(mask.begin(), mask.end(), [](uint32_t word) { return word != 0; });
  }

  void accept(int32_t token_id) override {
    if (matcher_.accept(token_id)) return;
    throw Error(Code::kInternal,
                fmt::format("token {} was drawn, which the grammar does not allow after {} others",
                            token_id, matcher_.num_tokens()));
  }

  bool try_accept(int32_t token_id) override {
    if (!matcher_.accept(token_id)) return false;
    ++num_tried_;
    return true;
  }

  void rollback() override { matcher_.rollback(std::exchange(num_tried_, 0)); }

  bool is_over() override {
    try {
      return matcher_.must_end();
    } catch (const Error&) {
      return false;  // the next mask says why
    }
  }

 private:
  Matcher matcher_;
  int32_t num_tried_ = 0;
};

}  // namespace

GrammarGuidance::GrammarGuidance(std::shared_ptr<const CompiledGrammar> grammar,
                                 std::shared_ptr<const Vocabulary> vocabulary)
    : grammar_(std::move(grammar)),
      vocabulary_(std::move(vocabulary)),
      num_enough_tokens_(Matcher(grammar_, vocabulary_).min_tokens_to_end()) {}

std::unique_ptr<TokenGuide> GrammarGuidance::start() const {
  return std::make_unique<MatcherGuide>(Matcher(grammar_, vocabulary_));
}

}  // namespace tgi::guide
