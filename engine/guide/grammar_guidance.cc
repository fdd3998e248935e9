#include "engine/guide/grammar_guidance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/guide/matcher.h"

namespace tgi::guide {
namespace {

constexpr size_t kMaxForcedBytes = 128;  // at a time

class MatcherGuide final : public TokenGuide {
 public:
  MatcherGuide(Matcher matcher, CanonicalTokens canonical)
      : matcher_(std::move(matcher)), canonical_(std::move(canonical)) {}

  bool fill_mask(std::span<uint32_t> mask, int64_t max_tokens) override {
    matcher_.fill_mask(mask, max_tokens);
    return std::any_of(mask.begin(), mask.end(), [](uint32_t word) { return word != 0; });
  }

  void accept(int32_t token_id) override {
    find_forced();
    if (!matcher_.accept(token_id)) {
      throw Error(
          Code::kInternal,
          fmt::format("token {} was drawn, which the grammar does not allow after {} others",
                      token_id, matcher_.num_tokens()));
    }
    pass(token_id);
  }

  bool try_accept(int32_t token_id) override {
    find_forced();
    if (num_tried_ == 0) before_tries_ = forced_;
    if (!matcher_.accept(token_id)) return false;
    ++num_tried_;
    pass(token_id);
    return true;
  }

  void rollback() override {
    if (num_tried_ > 0) forced_ = std::move(before_tries_);
    matcher_.rollback(std::exchange(num_tried_, 0));
  }

  std::span<const int32_t> forced_tokens() override {
    find_forced();
    return std::span(forced_.ids).subspan(forced_.next);
  }

  bool is_over() override {
    try {
      return matcher_.must_end();
    } catch (const Error&) {
      return false;  // the next mask says why
    }
  }

 private:
  // A forced text, which is cut into tokens where it begins: so they are the same whatever is
  // looked at, and when.
  struct Forced {
    bool is_found = false;
    std::vector<int32_t> ids{};
    size_t next = 0;
  };

  void find_forced() {
    if (forced_.is_found || !canonical_) return;
    forced_ = {.is_found = true};
    try {
      std::string text = matcher_.forced_text(kMaxForcedBytes);
      text.resize(valid_utf8_prefix(text));
      if (!text.empty()) forced_.ids = canonical_(text);
    } catch (const Error&) {
      // the next mask says why
    }
  }

  void pass(int32_t token_id) {
    const bool goes_on =
        forced_.next + 1 < forced_.ids.size() && forced_.ids[forced_.next] == token_id;
    if (goes_on) {
      ++forced_.next;
    } else {
      forced_ = {};
    }
  }

  Matcher matcher_;
  const CanonicalTokens canonical_;
  int32_t num_tried_ = 0;
  Forced forced_;
  Forced before_tries_;
};

}  // namespace

GrammarGuidance::GrammarGuidance(std::shared_ptr<const CompiledGrammar> grammar,
                                 std::shared_ptr<const Vocabulary> vocabulary,
                                 CanonicalTokens canonical)
    : grammar_(std::move(grammar)),
      vocabulary_(std::move(vocabulary)),
      canonical_(std::move(canonical)),
      num_enough_tokens_(Matcher(grammar_, vocabulary_).min_tokens_to_end()) {}

std::unique_ptr<TokenGuide> GrammarGuidance::start() const {
  return std::make_unique<MatcherGuide>(Matcher(grammar_, vocabulary_), canonical_);
}

}  // namespace tgi::guide
