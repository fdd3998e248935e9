// Tokens that grammars ask for by name and by number, against plain search: a token may be read as
// its bytes or as itself, and a sequence belongs to the language when one of its readings does.
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/guide/gbnf.h"
#include "engine/guide/lark.h"
#include "tests/catch.h"
#include "tests/guide/vocabularies.h"

namespace tgi::guide::token_set_test {
namespace {

using Ids = std::vector<int32_t>;

const std::vector<std::string> kSmallVocabulary = {"a", "b", "ab", "<|x|>", "<|y|>", "ba"};
constexpr int32_t kNumTokens = 6;
constexpr size_t kLongest = 5;

// Itself: a capital letter, the first for the first token.
bool has_reading(const std::regex& pattern, const Ids& ids, size_t at, const std::string& before) {
  if (at == ids.size()) return std::regex_match(before, pattern);
  const auto id = static_cast<size_t>(ids[at]);
  if (has_reading(pattern, ids, at + 1, before + static_cast<char>('A' + id))) return true;
  return !kSmallVocabulary[id].starts_with("<") &&
         has_reading(pattern, ids, at + 1, before + kSmallVocabulary[id]);
}

struct FoundLanguage {
  std::set<Ids> texts;
  std::set<Ids> prefixes;
};

FoundLanguage search(const std::string& pattern) {
  const std::regex compiled(pattern);
  FoundLanguage out;
  std::vector<Ids> last{{}};
  for (size_t length = 0; length <= kLongest; ++length) {
    std::vector<Ids> next;
    for (Ids& ids : last) {
      if (has_reading(compiled, ids, 0, "")) {
        out.texts.insert(ids);
        for (size_t i = 0; i <= ids.size(); ++i)
          out.prefixes.emplace(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i));
      }
      for (int32_t id = 0; length < kLongest && id < kNumTokens; ++id) {
        next.push_back(ids);
        next.back().push_back(id);
      }
    }
    last = std::move(next);
  }
  return out;
}

void check_from(Matcher& matcher, Ids& taken, const FoundLanguage& language) {
  INFO(Catch::Detail::stringify(taken));
  REQUIRE(matcher.can_end() == language.texts.contains(taken));
  if (taken.size() == 2) return;  // the end of each is near enough to be found
  const Ids allowed = allowed_tokens(matcher, kNumTokens);
  Ids expected;
  for (int32_t id = 0; id < kNumTokens; ++id) {
    taken.push_back(id);
    if (language.prefixes.contains(taken)) expected.push_back(id);
    taken.pop_back();
  }
  REQUIRE(allowed == expected);
  for (int32_t id = 0; id < kNumTokens; ++id) {
    const bool is_allowed = std::find(allowed.begin(), allowed.end(), id) != allowed.end();
    REQUIRE(matcher.accept(id) == is_allowed);
    if (!is_allowed) continue;
    taken.push_back(id);
    check_from(matcher, taken, language);
    taken.pop_back();
    matcher.rollback(1);
  }
}

std::shared_ptr<const CompiledGrammar> compiled_gbnf(const std::string& text) {
  Grammar grammar;
  grammar.set_start(add_gbnf(grammar, text));
  return compile_grammar(grammar);
}

std::string refusal_of(const std::string& gbnf) {
  try {
    Matcher matcher(compiled_gbnf(gbnf), vocabulary_of(kSmallVocabulary));
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("tokens_by_number_are_what_plain_search_finds") {
  const std::pair<const char*, const char*> languages[] = {
      {"root ::= <[0]> <|x|>", "AD"},
      {"root ::= <[0,2-3]> \"b\"", "[ACD]b"},
      {"root ::= \"a\" !<|x|> (\"b\" | <[0]>)*", "a[ABCEF](b|A)*"},
      {"root ::= <[*]>? \"ab\"", "[A-F]?ab"},
      {"root ::= <[^1-4]>{1,2} \"a\"", "[AF]{1,2}a"},
      {"root ::= !<|y|>* <|y|> \"a\"?", "[ABCDF]*Ea?"},
      // One token read both ways: what follows differs.
      {"root ::= <[2]> \"a\" | \"ab\" \"b\" | \"a\" <[*]>", "Ca|abb|a[A-F]"},
      {"root ::= (<[0-2]> | <[2-4]>) (<[*]> | \"ba\")", "([ABC]|[CDE])([A-F]|ba)"},
      {"root ::= (\"a\" | <[0]> <[*]>)+", "(a|A[A-F])+"},
      {"root ::= !<[^0]> r\nr ::= \"b\" r \"a\" | <|x|>", "A(D|bDa|bbDaa|bbbDaaa|bbbbDaaaa)"},
  };
  const auto vocabulary = vocabulary_of(kSmallVocabulary);
  for (const auto& [gbnf, pattern] : languages) {
    INFO(gbnf);
    Matcher matcher(compiled_gbnf(gbnf), vocabulary);
    Ids taken;
    const FoundLanguage language = search(pattern);
    REQUIRE(!language.texts.empty());
    check_from(matcher, taken, language);
  }
}

TEST_CASE("tokens_that_end_an_answer_are_not_any_token") {
  Matcher matcher(compiled_gbnf("root ::= <[*]>"), vocabulary_of(kSmallVocabulary));
  CHECK(allowed_tokens(matcher, 7) == Ids{0, 1, 2, 3, 4, 5});
  REQUIRE(matcher.accept(3));
  CHECK(allowed_tokens(matcher, 7) == Ids{6});
}

TEST_CASE("limits_reach_the_end_by_way_of_tokens") {
  Matcher matcher(compiled_gbnf("root ::= !<|y|>* <|y|> \"a\" <|x|>"),
                  vocabulary_of(kSmallVocabulary));
  CHECK(matcher.min_tokens_to_end() == 3);
  CHECK(allowed_tokens(matcher, 7, 3) == Ids{4});
  REQUIRE(matcher.accept(4));
  CHECK(allowed_tokens(matcher, 7, 2) == Ids{0});
}

TEST_CASE("tokens_that_a_vocabulary_lacks_are_refused") {
  CHECK_THAT(refusal_of("root ::= <[7]>"), Catch::Contains("token 7") && Catch::Contains("has 7"));
  CHECK_THAT(refusal_of("root ::= !<|z|>"), Catch::Contains("<|z|>"));
  CHECK_THAT(refusal_of("root ::= !<[*]>"), Catch::Contains("no token"));
  CHECK_THAT(refusal_of("root ::= <[^0-6]>"), Catch::Contains("no token"));
  CHECK_THAT(refusal_of("root ::= <[3-1]>"), Catch::Contains("line 1, column 12"));
  CHECK_THAT(refusal_of("root ::= <[]>"), Catch::Contains("expected the number"));
  CHECK_THAT(refusal_of("root ::= <[1"), Catch::Contains("]>"));
  CHECK_THAT(refusal_of("root ::= <[99999999999999999999]>"), Catch::Contains("1000000000"));
}

}  // namespace tgi::guide::token_set_test
