// Answers that may not end yet, free ones and those of a form.
#include <string>
#include <vector>

#include "engine/guide/grammar.h"
#include "engine/guide/grammar_guidance.h"
#include "engine/guide/minimum_guidance.h"
#include "engine/guide/regex.h"
#include "tests/catch.h"
#include "tests/guide/vocabularies.h"

namespace tgi::guide {
namespace {

const std::vector<std::string> kTokens = {"a", "b", "ab"};
constexpr int32_t kEnd = 3;  // of vocabulary_of(kTokens)

std::shared_ptr<const Guidance> of_pattern(const std::string& pattern,
                                           const std::shared_ptr<const Vocabulary>& vocabulary) {
  Grammar grammar;
  const Rule rule = grammar.declare("answer");
  grammar.define(rule, grammar.terminal(parse_regex(grammar.regex(), pattern, RegexUse::kWhole)));
  grammar.set_start(rule);
  return std::make_shared<GrammarGuidance>(compile_grammar(grammar), vocabulary);
}

std::vector<int32_t> allowed(TokenGuide& guide, int64_t max_tokens = 100) {
  std::vector<uint32_t> mask(1);
  REQUIRE(guide.fill_mask(mask, max_tokens));
  std::vector<int32_t> out;
  for (int32_t id = 0; id <= kEnd; ++id) {
    if ((mask[0] >> id & 1) != 0) out.push_back(id);
  }
  return out;
}

}  // namespace

TEST_CASE("a free answer may not end before its minimum") {
  const auto vocabulary = vocabulary_of(kTokens);
  const auto guide = with_minimum(nullptr, vocabulary, 2)->start();
  CHECK(allowed(*guide) == std::vector<int32_t>{0, 1, 2});
  guide->accept(0);
  CHECK(allowed(*guide) == std::vector<int32_t>{0, 1, 2});
  CHECK_FALSE(guide->try_accept(kEnd));
  CHECK(guide->try_accept(2));
  CHECK(allowed(*guide) == std::vector<int32_t>{0, 1, 2, kEnd});
  CHECK(guide->try_accept(kEnd));
  guide->rollback();
  CHECK(allowed(*guide) == std::vector<int32_t>{0, 1, 2});
  guide->accept(1);
  CHECK(allowed(*guide) == std::vector<int32_t>{0, 1, 2, kEnd});
  CHECK_FALSE(guide->is_over());
}

TEST_CASE("an answer of a form goes on to its minimum where the form has more, and no further") {
  const auto vocabulary = vocabulary_of(kTokens);
  const auto longer = with_minimum(of_pattern("a+", vocabulary), vocabulary, 3)->start();
  for (int i = 0; i < 3; ++i) {
    CHECK(allowed(*longer) == std::vector<int32_t>{0});
    longer->accept(0);
  }
  CHECK(allowed(*longer) == std::vector<int32_t>{0, kEnd});
  const auto whole = with_minimum(of_pattern("ab?", vocabulary), vocabulary, 5)->start();
  CHECK(allowed(*whole) == std::vector<int32_t>{0, 2});
  whole->accept(0);
  CHECK(allowed(*whole) == std::vector<int32_t>{1});  // could end, and need not
  whole->accept(1);
  CHECK(whole->is_over());
  CHECK(allowed(*whole) == std::vector<int32_t>{kEnd});
}

}  // namespace tgi::guide
