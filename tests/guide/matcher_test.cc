// Matchers against the definition: a token is allowed when its bytes lead to something that has an
// end.
#include "engine/guide/matcher.h"

#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/catch.h"

namespace tgi::guide {
namespace {

std::shared_ptr<const Vocabulary> vocabulary_of(const std::vector<std::string>& tokens) {
  std::vector<Vocabulary::Token> all;
  for (const std::string& token : tokens) {
    const bool special = token.starts_with("<|");
    all.push_back({special ? "" : token, special ? token : ""});
  }
  all.push_back({"", "<|end|>"});
  return std::make_shared<const Vocabulary>(std::move(all),
                                            std::vector{static_cast<int32_t>(tokens.size())});
}

std::vector<int32_t> allowed(Matcher& matcher, int32_t vocab_size, int64_t max_tokens = -1) {
  std::vector<uint32_t> mask(static_cast<size_t>(vocab_size + 31) / 32);
  matcher.fill_mask(mask, max_tokens);
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < vocab_size; ++id) {
    if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) ids.push_back(id);
  }
  return ids;
}

}  // namespace

TEST_CASE("a_matcher_follows_nested_calls") {
  Grammar grammar;
  const Rule list = grammar.declare("list");
  const Expr item = grammar.either({grammar.terminal(parse_regex(grammar.regex(), "[a-z]+", RegexUse::kWhole)),
                                    grammar.call(list)});
  const Expr more = grammar.repeat(grammar.sequence({grammar.text(","), item}), 0, kUnbounded);
  grammar.define(list, grammar.sequence({grammar.text("("), item, more, grammar.text(")")}));
  grammar.set_start(list);
  const auto vocabulary = vocabulary_of({"(", ")", ",", "a", "b", "ab", "((", "),(", "a,b", "))", "x)"});
  Matcher matcher(compile_grammar(grammar), vocabulary);
  CHECK(allowed(matcher, vocabulary->size()) == std::vector{0, 6});
  REQUIRE(matcher.accept(6));
  CHECK(allowed(matcher, vocabulary->size()) == std::vector{0, 3, 4, 5, 6, 8, 10});
  REQUIRE(matcher.accept(10));
  CHECK(allowed(matcher, vocabulary->size()) == std::vector{1, 2});
  CHECK_FALSE(matcher.accept(9));
  REQUIRE(matcher.accept(1));
  CHECK(matcher.must_end());
  CHECK(allowed(matcher, vocabulary->size()) == std::vector{11});
  matcher.rollback(2);
  CHECK(allowed(matcher, vocabulary->size()) == std::vector{0, 3, 4, 5, 6, 8, 10});
  CHECK(matcher.min_tokens_to_end() == 2);
}

}  // namespace tgi::guide
