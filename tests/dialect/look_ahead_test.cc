// Guides that look ahead, over drafts, are then where they were.
#include <string>

#include "base/error.h"
#include "engine/dialect/reasoning_budget.h"
#include "engine/guide/gbnf.h"
#include "engine/guide/grammar_guidance.h"
#include "tests/catch.h"
#include "tests/guide/vocabularies.h"

namespace tgi::dialect {
namespace {

using guide::vocabulary_of;

std::shared_ptr<const Guidance> guidance_of(
    const std::string& gbnf, const std::shared_ptr<const guide::Vocabulary>& vocabulary) {
  guide::Grammar grammar;
  grammar.set_start(add_gbnf(grammar, gbnf));
  return std::make_shared<guide::GrammarGuidance>(compile_grammar(grammar), vocabulary);
}

std::vector<int32_t> allowed(TokenGuide& guide, int32_t vocab_size) {
  std::vector<uint32_t> mask(static_cast<size_t>(vocab_size + 31) / 32);
  std::vector<int32_t> ids;
  if (!guide.fill_mask(mask, 1000)) return ids;
  for (int32_t id = 0; id < vocab_size; ++id) {
    if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) ids.push_back(id);
  }
  return ids;
}

}  // namespace

TEST_CASE("a guide that has looked ahead goes on from what it had accepted") {
  const auto vocabulary = vocabulary_of({"a", "b", "c"});
  const auto guidance = guidance_of("root ::= \"ab\" (\"ab\" | \"c\")", vocabulary);
  const auto guide = guidance->start();
  guide->accept(0);
  REQUIRE(guide->try_accept(1));
  CHECK(allowed(*guide, 4) == std::vector{0, 2});
  REQUIRE(guide->try_accept(2));
  CHECK(guide->is_over());
  CHECK_FALSE(guide->try_accept(0));
  guide->rollback();
  CHECK(allowed(*guide, 4) == std::vector{1});
  CHECK_FALSE(guide->is_over());
  guide->accept(1);
  guide->rollback();  // nothing was tried since
  CHECK(allowed(*guide, 4) == std::vector{0, 2});
}

TEST_CASE("tokens of reasoning that were only looked at are not counted") {
  const auto vocabulary = vocabulary_of({"a", "b", "</", "t>"});
  const auto guidance = with_reasoning_budget(
      guidance_of("root ::= [a-z<>/]*", vocabulary), vocabulary,
      {.begins = {"<t>"}, .ends = {"</t>"}, .has_begun = true, .max_tokens = 2});
  const auto guide = guidance->start();
  guide->accept(0);
  // One more is left of the budget; then the mark alone may follow.
  REQUIRE(guide->try_accept(1));
  CHECK(allowed(*guide, 4) == std::vector{2});
  REQUIRE(guide->try_accept(2));
  REQUIRE(guide->try_accept(3));
  CHECK(allowed(*guide, 4) == std::vector{0, 1, 2, 3});
  guide->rollback();
  CHECK(allowed(*guide, 4) == std::vector{0, 1, 2, 3});
  guide->accept(0);
  CHECK(allowed(*guide, 4) == std::vector{2});
  guide->accept(2);
  CHECK(allowed(*guide, 4) == std::vector{3});
}

}  // namespace tgi::dialect
