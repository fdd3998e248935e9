// Masks of wide loops, counted and not, against the definition, over vocabularies of random tokens;
// going back against starting again; limits on tokens against walking to the end.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nlohmann_json.h"
#include "engine/guide/common_masks.h"
#include "engine/guide/json_schema.h"
#include "tests/catch.h"
#include "tests/guide/vocabularies.h"

namespace tgi::guide {
namespace {

std::vector<std::string> random_tokens(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  const std::vector<std::string> pieces = {"a",
                                           "b",
                                           "z",
                                           "Q",
                                           "0",
                                           "7",
                                           " ",
                                           "\"",
                                           "\\",
                                           "\\\"",
                                           "\\u00",
                                           "\n",
                                           ",",
                                           ":",
                                           "{",
                                           "}",
                                           "[",
                                           "]",
                                           "-",
                                           ".",
                                           "\xC3",
                                           "\xBC",
                                           "\xC3\xBC",
                                           "\xE6\x97\xA5",
                                           "\xE6",
                                           "\x97",
                                           "\xA5",
                                           "the",
                                           "\xF0\x9F\x98\x80"};
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  while (tokens.size() < count) {
    std::string token;
    for (auto i = random() % 6 + 1; i > 0; --i) token += pieces[random() % pieces.size()];
    tokens.push_back(std::move(token));
  }
  return tokens;
}

const char* const kPatterns[] = {
    "[a-z]{2,5}",
    "[a-zA-Z ]{0,12}\\.",
    "\"([^\"\\\\\\x00-\\x1f]|\\\\([\"\\\\/bfnrt]|u[0-9a-f]{4})){1,7}\"",
    "\"([^\"\\\\\\x00-\\x1f]|\\\\([\"\\\\/bfnrt]|u[0-9a-f]{4}))*\"",
    "[^,]{3,}(,[^,]{0,2})*",
    "(?s:.){0,9}the",         // what follows the loop may begin like it
    "([a-z0-9]{2}){1,4}-?",   // rounds of two bytes
    "([a-z]|[a-z]{2}){0,6}",  // rounds of one or two
    "Q([a-z]{1,9})?",         // a loop as the round of another
    "([a-z]{0,3}){2,3}",
    "(?=.*z)[a-zQ]{1,40}",  // an intersection
    "\\p{L}{1,6}[0-9]{1,20}",
};

// A list of what the pattern matches: loops that are called, left, and followed.
std::shared_ptr<const CompiledGrammar> list_of(const std::string& pattern) {
  Grammar grammar;
  const Rule item = grammar.declare("item");
  const Expr terminal = grammar.terminal(parse_regex(grammar.regex(), pattern, RegexUse::kWhole));
  grammar.define(item,
                 grammar.either({terminal, grammar.sequence({grammar.text("["), grammar.call(item),
                                                             grammar.text("]")})}));
  const Rule list = grammar.declare("list");
  grammar.define(
      list, grammar.sequence(
                {grammar.call(item),
                 grammar.repeat(grammar.sequence({grammar.text(","), grammar.call(item)}), 0, 3)}));
  grammar.set_start(list);
  return compile_grammar(grammar);
}

}  // namespace

TEST_CASE("an end token is no part of a text where the tokenizer takes it for one") {
  const std::vector<Vocabulary::Token> tokens = {
      {"\"", ""}, {"a", ""}, {"</s>", "</s>"}, {"\n", ""}};
  const auto vocabulary = std::make_shared<const Vocabulary>(tokens, std::vector<int32_t>{2, 3});
  Grammar grammar;
  grammar.set_start(
      add_json_schema(grammar, nlohmann::ordered_json::parse(R"({"type":"string"})"), {}));
  Matcher matcher(compile_grammar(grammar), vocabulary);
  REQUIRE(matcher.accept(0));
  CHECK(allowed_tokens(matcher, 4) == std::vector<int32_t>{0, 1});
  CHECK_FALSE(matcher.accept(2));
  REQUIRE(matcher.accept(0));
  CHECK(allowed_tokens(matcher, 4) == std::vector<int32_t>{2, 3});
}

TEST_CASE("masks_of_loops_are_those_of_the_definition") {
  for (uint32_t seed = 0; seed < 3; ++seed) {
    const auto vocabulary = vocabulary_of(random_tokens(seed, 700));
    for (const char* pattern : kPatterns) {
      const auto grammar = list_of(pattern);
      std::mt19937 random(seed);
      for (int walk = 0; walk < 6; ++walk) {
        Matcher matcher(grammar, vocabulary);
        for (int length = 0; length < 12; ++length) {
          const std::vector<int32_t> ids = allowed_tokens(matcher, vocabulary->size());
          std::vector<int32_t> expected;
          for (int32_t id = 0; id < vocabulary->size(); ++id) {
            if (matcher.allows(id)) expected.push_back(id);
          }
          INFO(pattern << ", seed " << seed << ", walk " << walk << ", token " << length);
          REQUIRE(ids == expected);
          REQUIRE_FALSE(ids.empty());
          // Longer tokens more often: they are the ones that leave rules.
          int32_t next = ids[random() % ids.size()];
          for (int tries = 0; tries < 3; ++tries) {
            const int32_t other = ids[random() % ids.size()];
            if (vocabulary->bytes(other).size() > vocabulary->bytes(next).size()) next = other;
          }
          REQUIRE(matcher.accept(next));
          if (vocabulary->is_end_token(next)) break;
        }
      }
    }
  }
}

// Large enough that whole subtrees of the vocabulary are taken without a look at what is in them.
TEST_CASE("masks_of_large_vocabularies_are_those_of_the_definition") {
  for (const uint32_t seed : {11U, 12U}) {
    const auto vocabulary = vocabulary_of(random_tokens(seed, 6000));
    for (const char* pattern :
         {"(?s:.)*", "[^\\n]{0,9}!?", "(?s:.){0,30}", "[a-zQ]+( [a-z]+){1,4}", "[a-z0-9Q]{1,9}",
          "\"([^\"\\\\\\x00-\\x1f]|\\\\[nrt\"])*\"", "[^a]*END", "(ü|[a-z]|日){2,}",
          "(?s:.)*a.*b(?s:.)*", "(?=(?s:.)*zz)(?!(?s:.)*QQ)[^,\\]]*"}) {
      const auto grammar = list_of(pattern);
      std::mt19937 random(seed);
      Matcher matcher(grammar, vocabulary);
      for (int length = 0; length < 8; ++length) {
        const std::vector<int32_t> ids = allowed_tokens(matcher, vocabulary->size());
        std::vector<int32_t> expected;
        for (int32_t id = 0; id < vocabulary->size(); ++id) {
          if (matcher.allows(id)) expected.push_back(id);
        }
        INFO(pattern << ", seed " << seed << ", token " << length);
        REQUIRE(ids == expected);
        if (ids.empty() || !matcher.accept(ids[random() % ids.size()])) break;
      }
    }
  }
}

TEST_CASE("masks_of_names_that_patterns_tell_apart_are_those_of_the_definition") {
  const auto vocabulary = vocabulary_of(random_tokens(13, 6000));
  for (
      const char* schema :
      {R"({"type": "object", "patternProperties": {"a.*b": {"const": 1}, "Q{2,}": {"const": "z"}}})",
       R"({"type": "object", "patternProperties": {"z*": {"type": "integer"}, "zzz*": {"maximum": 7}}})",
       R"({"type": "object", "patternProperties": {"b.*": true, "the": false}})",
       R"({"type": "object", "properties": {"ab": {"type": "null"}, "the": {"type": "array"}},
            "patternProperties": {"a.b": {"minItems": 2}},
            "additionalProperties": {"type": "integer"}})",
       R"({"type": "object", "patternProperties": {"^\\p{L}+$": {"const": 7}}, "propertyNames": {"maxLength": 5}})"}) {
    Grammar made;
    made.set_start(add_json_schema(made, nlohmann::ordered_json::parse(schema)));
    const auto grammar = compile_grammar(made);
    std::mt19937 random(13);
    for (int walk = 0; walk < 3; ++walk) {
      Matcher matcher(grammar, vocabulary);
      for (int length = 0; length < 8; ++length) {
        const std::vector<int32_t> ids = allowed_tokens(matcher, vocabulary->size());
        std::vector<int32_t> expected;
        for (int32_t id = 0; id < vocabulary->size(); ++id) {
          if (matcher.allows(id)) expected.push_back(id);
        }
        INFO(schema << ", walk " << walk << ", token " << length);
        REQUIRE(ids == expected);
        if (ids.empty() || !matcher.accept(ids[random() % ids.size()])) break;
      }
    }
  }
}

TEST_CASE("answers_are_complete_when_the_budget_runs_out") {
  const auto vocabulary = vocabulary_of(random_tokens(7, 600));
  std::mt19937 random(1);
  for (const char* pattern : kPatterns) {
    const auto grammar = list_of(pattern);
    for (int64_t extra = 0; extra < 24; extra += 3) {
      Matcher matcher(grammar, vocabulary);
      int64_t budget = matcher.min_tokens_to_end() + extra;
      INFO(pattern << " with " << budget << " tokens");
      for (bool ended = false; !ended && budget > 0; --budget) {
        const std::vector<int32_t> ids = allowed_tokens(matcher, vocabulary->size(), budget);
        REQUIRE_FALSE(ids.empty());
        const int32_t next = ids[random() % ids.size()];
        REQUIRE(matcher.accept(next));
        ended = vocabulary->is_end_token(next);
      }
      CHECK(matcher.can_end());
    }
  }
}

TEST_CASE("masks_made_when_a_model_is_loaded_are_those_made_later") {
  const auto cold = vocabulary_of(random_tokens(21, 900));
  const auto warm = vocabulary_of(random_tokens(21, 900));
  make_common_masks(warm);
  for (const char* pattern : {"\"[^\"]*\"", "[a-zA-Z_][a-zA-Z0-9_]*", "[^\\n]*\\n"}) {
    const auto grammar = list_of(pattern);
    Matcher with(grammar, warm);
    Matcher without(grammar, cold);
    std::mt19937 random(3);
    for (int length = 0; length < 10; ++length) {
      const std::vector<int32_t> ids = allowed_tokens(with, warm->size());
      INFO(pattern << ", token " << length);
      REQUIRE(ids == allowed_tokens(without, cold->size()));
      if (ids.empty()) break;
      const int32_t next = ids[random() % ids.size()];
      REQUIRE(with.accept(next));
      REQUIRE(without.accept(next));
    }
  }
}

TEST_CASE("going_back_is_as_if_nothing_had_been") {
  const auto vocabulary = vocabulary_of(random_tokens(3, 500));
  std::mt19937 random(5);
  for (const char* pattern : kPatterns) {
    const auto grammar = list_of(pattern);
    Matcher matcher(grammar, vocabulary);
    std::vector<int32_t> taken;
    for (int step = 0; step < 60; ++step) {
      if (!taken.empty() && random() % 3 == 0) {
        const auto back = static_cast<int32_t>(random() % taken.size()) + 1;
        matcher.rollback(back);
        taken.resize(taken.size() - static_cast<size_t>(back));
      } else {
        const std::vector<int32_t> ids = allowed_tokens(matcher, vocabulary->size());
        if (ids.empty()) continue;
        taken.push_back(ids[random() % ids.size()]);
        REQUIRE(matcher.accept(taken.back()));
      }
      Matcher again(grammar, vocabulary);
      for (const int32_t id : taken) REQUIRE(again.accept(id));
      REQUIRE(matcher.num_tokens() == static_cast<int32_t>(taken.size()));
      REQUIRE(matcher.can_end() == again.can_end());
      REQUIRE(allowed_tokens(matcher, vocabulary->size()) ==
              allowed_tokens(again, vocabulary->size()));
    }
  }
}

TEST_CASE("special_tokens_are_called_by_name") {
  Grammar grammar;
  const Rule root = grammar.declare("root");
  grammar.define(root, grammar.sequence({grammar.text("a"), grammar.special_token("<|call|>"),
                                         grammar.repeat(grammar.text("b"), 1, 2)}));
  grammar.set_start(root);
  const auto compiled = compile_grammar(grammar);
  const auto vocabulary = vocabulary_of({"a", "b", "<|call|>", "ab", "<|other|>"});
  Matcher matcher(compiled, vocabulary);
  CHECK(matcher.min_tokens_to_end() == 3);
  CHECK(allowed_tokens(matcher, 6) == std::vector{0});
  REQUIRE(matcher.accept(0));
  CHECK(matcher.forced_text(100).empty());
  CHECK(allowed_tokens(matcher, 6) == std::vector{2});
  REQUIRE(matcher.accept(2));
  CHECK(matcher.forced_text(100) == "b");
  CHECK(allowed_tokens(matcher, 6) == std::vector{1});
  REQUIRE(matcher.accept(1));
  CHECK(allowed_tokens(matcher, 6) == std::vector{1, 5});
  CHECK(allowed_tokens(matcher, 6, 0) == std::vector{5});
  CHECK_THROWS_WITH(Matcher(compiled, vocabulary_of({"a", "b"})), Catch::Contains("<|call|>"));
}

}  // namespace tgi::guide
