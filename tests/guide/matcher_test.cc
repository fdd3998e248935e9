// Matchers against the definition: a token is allowed when its bytes lead to something that has an
// end.
#include "engine/guide/matcher.h"

#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/guide/vocabularies.h"

namespace tgi::guide {
TEST_CASE("a_matcher_follows_nested_calls") {
  Grammar grammar;
  const Rule list = grammar.declare("list");
  const Expr item =
      grammar.either({grammar.terminal(parse_regex(grammar.regex(), "[a-z]+", RegexUse::kWhole)),
                      grammar.call(list)});
  const Expr more = grammar.repeat(grammar.sequence({grammar.text(","), item}), 0, kUnbounded);
  grammar.define(list, grammar.sequence({grammar.text("("), item, more, grammar.text(")")}));
  grammar.set_start(list);
  const auto vocabulary =
      vocabulary_of({"(", ")", ",", "a", "b", "ab", "((", "),(", "a,b", "))", "x)"});
  Matcher matcher(compile_grammar(grammar), vocabulary);
  CHECK(allowed_tokens(matcher, vocabulary->size()) == std::vector{0, 6});
  REQUIRE(matcher.accept(6));
  CHECK(allowed_tokens(matcher, vocabulary->size()) == std::vector{0, 3, 4, 5, 6, 8, 10});
  REQUIRE(matcher.accept(10));
  CHECK(allowed_tokens(matcher, vocabulary->size()) == std::vector{1, 2});
  CHECK_FALSE(matcher.accept(9));
  REQUIRE(matcher.accept(1));
  CHECK(matcher.must_end());
  CHECK(allowed_tokens(matcher, vocabulary->size()) == std::vector{11});
  matcher.rollback(2);
  CHECK(allowed_tokens(matcher, vocabulary->size()) == std::vector{0, 3, 4, 5, 6, 8, 10});
  CHECK(matcher.min_tokens_to_end() == 2);
}

}  // namespace tgi::guide
