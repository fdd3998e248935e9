// Whatever the limit of tokens, an answer is whole within it: random forms of every kind, with long
// ways to the end here and there, limits from the least that is enough on, and tokens that are
// drawn at random, the longest ones, or those that lead the farthest from the end.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nlohmann_json.h"
#include "engine/guide/gbnf.h"
#include "engine/guide/json_schema.h"
#include "tests/catch.h"
#include "tests/guide/random_grammar.h"
#include "tests/guide/vocabularies.h"

namespace tgi::guide {
namespace {

constexpr int kRounds = 15;  // of random forms; 1,000 were tried too
using Random = std::mt19937;

int32_t below(Random& random, int32_t bound) {
  return static_cast<int32_t>(random() % static_cast<uint32_t>(bound));
}

template <typename List>
auto one_of(Random& random, const List& list) {
  return list[random() % std::size(list)];
}

std::shared_ptr<const Vocabulary> tokens_of(uint32_t seed) {
  const std::vector<std::string> pieces = {
      "a",     "b",     "c",   "d",    "dd",     "dddd", "0",    "1",       "9",
      "\"",    "\",\"", "\",", "1,",   "],",     "},{",  "{\"",  "\":",     "[",
      "]",     "}",     "{",   ",",    " ",      "true", "ü",    "\n",      "null",
      "\":\"", "a\"",   "-",   "\":1", "\\u00e", "1,1,", "日本", "dddddddd"};
  Random random(seed);
  // Tokens in which an item ends and the next begins.
  std::vector<std::string> tokens = {"a\",",   "b\",",   "c\",",        "a\",\"", "b\",\"",
                                     "c\",\"", "a\"},{", "a\"},{\"x\"", "a\"},",  "0,\"",
                                     "1,\"",   "0,1,\"", "1,0,"};
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  while (tokens.size() < 800) {
    std::string token;
    for (auto i = random() % 4 + 1; i > 0; --i) token += one_of(random, pieces);
    tokens.push_back(std::move(token));
  }
  return vocabulary_of(tokens);
}

std::shared_ptr<const Vocabulary> all_tokens() {
  static const auto made = tokens_of(4);
  return made;
}

std::string letters(Random& random) {
  static const char* const kSets[] = {"a", "b", "[a-c]", "d", "[0-9]", "ü", ".", "[^\"]", "日"};
  return one_of(random, kSets);
}

// Lengths that jump: most are short, some far longer than any token.
int32_t some_count(Random& random) {
  static const int32_t kCounts[] = {0, 1, 1, 2, 2, 3, 5, 9, 40, 300, 1100, 1500};
  return one_of(random, kCounts);
}

std::string random_pattern(Random& random, int depth) {
  switch (depth == 0 ? 0 : below(random, 6)) {
    case 0: {
      const std::string set = letters(random);
      const int32_t min = some_count(random);
      if (below(random, 3) == 0) return set;
      if (below(random, 3) == 0) return set + "{" + std::to_string(min) + ",}";
      return set + "{" + std::to_string(min) + "," + std::to_string(min + below(random, 4)) + "}";
    }
    case 1:
    case 2: {
      std::string all = "(" + random_pattern(random, depth - 1);
      for (int i = below(random, 3); i >= 0; --i) all += "|" + random_pattern(random, depth - 1);
      return all + ")";
    }
    case 3:
      return random_pattern(random, depth - 1) + random_pattern(random, depth - 1);
    case 4:
      return "(" + random_pattern(random, depth - 1) +
             one_of(random, std::vector{")*", ")?", ")+"});
    default:
      return "(?=" + letters(random) + "{0,7})" + random_pattern(random, depth - 1);
  }
}

std::shared_ptr<const CompiledGrammar> form_of_pattern(const std::string& pattern) {
  Grammar grammar;
  const Rule root = grammar.declare("root");
  grammar.define(root, grammar.terminal(parse_regex(grammar.regex(), pattern, RegexUse::kWhole)));
  grammar.set_start(root);
  return compile_grammar(grammar);
}

std::shared_ptr<const CompiledGrammar> form_of_schema(const std::string& schema) {
  Grammar grammar;
  grammar.set_start(add_json_schema(grammar, nlohmann::ordered_json::parse(schema)));
  return compile_grammar(grammar);
}

nlohmann::ordered_json random_schema(Random& random, int depth, bool is_item = false) {
  using Json = nlohmann::ordered_json;
  const int kind = depth == 0 ? below(random, 5) : below(random, 9);
  if (kind == 0) return {{"type", "integer"}, {"minimum", below(random, 20)}};
  if (kind == 1) return {{"type", "string"}, {"minLength", some_count(random)}};
  if (kind == 2) return {{"type", "string"}, {"pattern", "^" + random_pattern(random, 1) + "$"}};
  if (kind == 3)
    return {{"type", "string"},
            {"pattern", "^(a|b|c|q{" + std::to_string(some_count(random) + 1) + "})$"}};
  if (kind == 4) {
    Json values = {1, true, "a", nullptr,
                   std::string(static_cast<size_t>(some_count(random)), 'b')};
    return {{"enum", values}};
  }
  if (kind == 5 || (kind == 6 && is_item)) {
    Json members = Json::object();
    Json required = Json::array();
    for (int i = below(random, 4); i >= 0; --i) {
      const std::string name = std::string(1, static_cast<char>('a' + i)) +
                               std::string(static_cast<size_t>(some_count(random)), 'n');
      members[name] = random_schema(random, depth - 1, is_item);
      if (below(random, 2) == 0) required.push_back(name);
    }
    return {{"type", "object"},
            {"properties", members},
            {"required", required},
            {"additionalProperties", false}};
  }
  if (kind == 6 || kind == 7) {
    Json array = {{"type", "array"}, {"items", random_schema(random, depth - 1, true)}};
    if (kind == 6) array["uniqueItems"] = true;
    if (below(random, 2) == 0) array["minItems"] = below(random, 4);
    if (below(random, 3) == 0) array["maxItems"] = 4 + below(random, 4);
    return array;
  }
  return {{"anyOf",
           {random_schema(random, depth - 1, is_item), random_schema(random, depth - 1, is_item)}}};
}

enum class Pick { kRandom, kLongest, kFarthest };

// A token of the mask, as a model might that does not want to end.
int32_t picked(Matcher& matcher, const std::vector<int32_t>& ids, Pick how, Random& random) {
  int32_t best = one_of(random, ids);
  if (how == Pick::kRandom) return best;
  int64_t most = -1;
  for (int tries = 0; tries < 6; ++tries) {
    const int32_t id = one_of(random, ids);
    int64_t value = static_cast<int64_t>(all_tokens()->bytes(id).size());
    if (how == Pick::kFarthest) {
      TGI_CHECK(matcher.accept(id));
      value = matcher.min_tokens_to_end();
      matcher.rollback(1);
    }
    if (value > most) best = id;
    most = std::max(most, value);
  }
  return best;
}

// Draws an answer of at most so many tokens.
void answer_within(const std::shared_ptr<const CompiledGrammar>& grammar,
                   int64_t budget,
                   Pick how,
                   Random& random) {
  Matcher matcher(grammar, all_tokens());
  std::string text;
  for (bool ended = false; !ended && budget > 0; --budget) {
    const std::vector<int32_t> ids = allowed_tokens(matcher, all_tokens()->size(), budget);
    INFO(budget << " tokens left after " << text);
    REQUIRE_FALSE(ids.empty());
    const int32_t next = picked(matcher, ids, how, random);
    const bool accepted = matcher.accept(next);  // may throw
    REQUIRE(accepted);
    text += all_tokens()->bytes(next);
    ended = all_tokens()->is_end_token(next) || matcher.must_end();
  }
  INFO("at the end: " << text);
  REQUIRE(matcher.can_end());
}

void check_limits(const std::shared_ptr<const CompiledGrammar>& grammar, Random& random) {
  const int64_t least = Matcher(grammar, all_tokens()).min_tokens_to_end();
  if (least > 4000) return;  // slow, and no other than the rest
  for (const Pick how : {Pick::kRandom, Pick::kLongest, Pick::kFarthest}) {
    for (const int64_t extra : {0, below(random, 12), below(random, 100), below(random, 1600)}) {
      INFO(least << " tokens are enough, " << least + extra << " are there");
      answer_within(grammar, std::max<int64_t>(least + extra, 1), how, random);
    }
  }
}

}  // namespace

TEST_CASE("answers_to_random_patterns_are_whole_within_any_limit") {
  Random random(11);
  for (int round = 0; round < kRounds; ++round) {
    const std::string pattern = random_pattern(random, 3);
    INFO(round << ": " << pattern);
    std::shared_ptr<const CompiledGrammar> grammar;
    try {
      grammar = form_of_pattern(pattern);
    } catch (const Error&) {
      continue;  // nothing satisfies it, or it is too large
    }
    check_limits(grammar, random);
  }
}

TEST_CASE("answers_to_random_grammars_are_whole_within_any_limit") {
  Random random(12);
  for (int seed = 0; seed < kRounds; ++seed) {
    RandomGrammar made(static_cast<uint32_t>(seed));
    INFO("grammar " << seed);
    std::shared_ptr<const CompiledGrammar> grammar;
    try {
      grammar = compile_grammar(made.grammar);
    } catch (const Error&) {
      continue;
    }
    try {
      check_limits(grammar, random);
    } catch (const Error& error) {
      // Some have ever more ways to read a text: an error, and no answer.
      REQUIRE_THAT(error.what(), Catch::Contains("can't be followed any further"));
    }
  }
}

TEST_CASE("answers_to_random_schemas_are_whole_within_any_limit") {
  Random random(13);
  int num_refused = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string schema = random_schema(random, 3).dump();
    INFO(round << ": " << schema);
    std::shared_ptr<const CompiledGrammar> grammar;
    try {
      grammar = form_of_schema(schema);
    } catch (const Error&) {
      ++num_refused;
      continue;
    }
    check_limits(grammar, random);
  }
  CHECK(num_refused < kRounds / 2);
}

// The short values are used up and the next is longer than any that had to be there.
TEST_CASE("items_that_differ_are_whole_where_the_next_value_is_far_longer") {
  Random random(14);
  const std::string list = R"({"type":"array","uniqueItems":true,"items":)";
  for (const std::string& schema :
       {list + R"({"type":"string","pattern":"^(a|b|c|q{1500})$"}})",
        list + R"({"type":"string","pattern":"^(a|b|c|q{1500})$"},"minItems":3})",
        list + R"({"type":"string","pattern":"^([ab]{0,2}|q{1200,})$"},"minItems":1})",
        list + R"({"type":"object","properties":{"x":{"type":"string","pattern":"^(a|q{1500})$"}},
                   "required":["x"],"additionalProperties":false}})",
        list + R"({"anyOf":[{"type":"integer","minimum":0,"maximum":1},
                            {"type":"string","minLength":1300}]}})",
        R"({"type":"object","properties":{"l":)" + list +
            R"({"type":"string","pattern":"^(a|b|c|q{1500})$"}}},"required":["l"]})"}) {
    const auto grammar = form_of_schema(schema);
    INFO(schema);
    const int64_t least = Matcher(grammar, all_tokens()).min_tokens_to_end();
    for (const Pick how : {Pick::kRandom, Pick::kLongest, Pick::kFarthest}) {
      for (int64_t extra = 0; extra < 1600;
           extra += 1 + below(random, kUnderSanitizers ? 1500 : 500)) {
        INFO(least << " tokens are enough, " << least + extra << " are there");
        answer_within(grammar, least + extra, how, random);
      }
    }
  }
}

}  // namespace tgi::guide
