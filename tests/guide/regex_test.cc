// Regular languages: patterns against what they match.
#include "engine/guide/regex.h"

#include <regex>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/guide/languages.h"

namespace tgi::guide {
namespace {

bool matches(const std::string& pattern, const std::string& text, RegexUse use = RegexUse::kWhole) {
  RegexPool pool;
  const Regex regex = parse_regex(pool, pattern, use);
  const bool by_derivatives = pool.matches(regex, text);
  // The automaton must say the same.
  const Dfa dfa = pool.dfa(regex);
  int32_t state = dfa.states.empty() ? Dfa::kDead : 0;
  for (const char c : text) {
    if (state == Dfa::kDead) break;
    state = dfa.states[static_cast<size_t>(state)].next[static_cast<uint8_t>(c)];
  }
  const bool by_dfa = state != Dfa::kDead && dfa.states[static_cast<size_t>(state)].accepts;
  CHECK(by_derivatives == by_dfa);
  return by_derivatives;
}

// The ASCII characters of a class, in their order.
std::string members(const std::string& pattern, RegexSyntax syntax) {
  RegexPool pool;
  const Regex regex = parse_regex(pool, pattern, RegexUse::kWhole, syntax);
  std::string found;
  for (char c = 0; c < 127; ++c) {
    if (pool.matches(regex, std::string(1, c))) found += c;
  }
  return found;
}

std::string possible_bytes(const std::string& pattern) {
  RegexPool pool;
  const ByteSet bytes = pool.possible_bytes(parse_regex(pool, pattern, RegexUse::kWhole));
  std::string ascii;
  for (size_t byte = 0; byte < 128; ++byte) {
    if (bytes[byte]) ascii += static_cast<char>(byte);
  }
  return ascii;
}

}  // namespace

TEST_CASE("possible_bytes_are_those_of_all_parts") {
  CHECK(possible_bytes("a{2,5}(b|cd)*") == "abcd");
  CHECK(possible_bytes("") == "");
  CHECK(possible_bytes("[b-d\u00e4]+") == "bcd");
  CHECK(possible_bytes("(?=[a-c]+$)[b-x]{3,}") == "bc");
  CHECK(possible_bytes("(?!ab)[a-c]*").find("abc") != std::string::npos);  // of "not": all
  CHECK(possible_bytes("[^a]").size() == 127);
}

TEST_CASE("anchors_inside_repetitions_hold_at_the_ends_of_the_text") {
  for (const char* pattern :
       {"^(a|b$)*$", "(a|b$)*", "^(/?(ab|a*)($|/))*$", "([^/]+(/|$)){3,}$", "(?:^b|a)*/", "(^a|b)+",
        "^((^a|b$)|/)*$", "(a(b|$))*", "^(a|^)*b", "(($)|a)*b", "((^|/)a+)+$",
        "^(?:(?:^a|b$|/){2,})*$", "(a$b|/)*", "((a^)*|b)*$"}) {
    const std::regex judge(pattern, std::regex::ECMAScript);
    RegexPool pool;
    const Regex whole = parse_regex(pool, pattern, RegexUse::kWhole);
    const Regex found = parse_regex(pool, pattern, RegexUse::kSearch);
    for (const std::string& text : texts_over("ab/")) {
      CAPTURE(pattern, text);
      REQUIRE(pool.matches(whole, text) == std::regex_match(text, judge));
      REQUIRE(pool.matches(found, text) == std::regex_search(text, judge));
    }
  }
}

TEST_CASE("patterns_match_what_they_say") {
  CHECK(matches("a|bc", "bc"));
  CHECK_FALSE(matches("a|bc", "b"));
  CHECK(matches("[a-c]{2,3}", "abc"));
  CHECK_FALSE(matches("[a-c]{2,3}", "abca"));
  CHECK(matches("(?i)straße", "STRAßE"));
  CHECK(matches("(?i)[a-z]+", "\u212A"));  // the Kelvin sign
  CHECK(matches(".", "\u00e4"));
  CHECK_FALSE(matches(".", "\xff"));
  CHECK_FALSE(matches("[^a]", "\xed\xa0\x80"));  // a surrogate
  CHECK(matches("\\p{Lu}\\p{Greek}+", "A\u03b1\u03b2"));
  CHECK(matches("(?!foo)[a-z]+", "bar"));
  CHECK_FALSE(matches("(?!foo)[a-z]+", "foob"));
  CHECK(matches("^((?!ab).)*$", "ba"));
  CHECK_FALSE(matches("^((?!ab).)*$", "cabd"));
  CHECK(matches("\\bfoo\\b.*", "foo bar"));
  CHECK_FALSE(matches("\\bfoo\\b.*", "foobar"));
  CHECK(matches("o\\b", "so, what", RegexUse::kSearch));
  CHECK_FALSE(matches("o\\b", "sob", RegexUse::kSearch));
  CHECK(matches("^a|b$", "xxb", RegexUse::kSearch));
  CHECK_FALSE(matches("^a|b$", "xax", RegexUse::kSearch));
  CHECK(matches("(?m)^b$", "a\nb\nc", RegexUse::kSearch));
}

TEST_CASE("classes_are_those_of_rust_where_they_are_asked_for") {
  struct Case {
    const char* pattern;
    const char* members;
  };
  // What llguidance 1.7.6 says of the same patterns.
  const std::vector<Case> cases = {
      {"[[:xdigit:]]", "0123456789ABCDEFabcdef"},
      {"[^[:^digit:]]", "0123456789"},
      {"[[:blank:]x]", "\t x"},
      {"[a-f&&[^ae]]", "bcdf"},
      {"[a-f--[ae]]", "bcdf"},
      {"[0-9--4]", "012356789"},
      {"[a-d~~c-f]", "abef"},
      {"[a[bc]d]", "abcd"},
      {"[[ab][cd]--bc]", "ad"},
      {"[a-z&&b-y--c-x]", "by"},
      {"[^[^a-c]]", "abc"},
      {"(?i)[a-c&&[^B]]", "ACac"},
      {"(?i)[[:upper:]&&[a-b]]", "ABab"},
      {"[[:lower:]&&[:^alpha:]0a]", "a"},
      {"[\\w--\\d--a-z]", "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"},
      {"[a\\[\\]&]", "&[]a"},
      {"[]a]", "]a"},
      {"[a-c-]", "-abc"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.pattern);
    CHECK(members(one.pattern, RegexSyntax::kRust) == one.members);
    CHECK(members(one.pattern, RegexSyntax::kRustClasses) == one.members);
  }
  for (const char* name : {"alnum", "alpha", "ascii", "cntrl", "digit", "graph", "lower", "print",
                           "punct", "space", "upper", "word"}) {
    CHECK_FALSE(members("[[:" + std::string(name) + ":]]", RegexSyntax::kRust).empty());
  }
}

TEST_CASE("classes_that_ecma_reads_in_another_way_stay_its_own") {
  // Where a hyphen ends a range, and where Rust misses the end of the class.
  CHECK(members("[+--]", RegexSyntax::kRustClasses) == "+,-");
  CHECK(members("[--/]", RegexSyntax::kRustClasses) == "-./");
  CHECK(members("[+--/]", RegexSyntax::kRustClasses) == "+,-/");
  CHECK(members("[--/]", RegexSyntax::kRust) == "-/");
  CHECK(members("[&&]", RegexSyntax::kRustClasses) == "&");
  for (const RegexSyntax syntax :
       {RegexSyntax::kEcma, RegexSyntax::kRustClasses, RegexSyntax::kRust}) {
    CHECK(members("[[]", syntax) == "[");
    CHECK(members("[[\\]x]", syntax) == "[]x");
    CHECK(members("[^[\\]\\x00-Y^-~]", syntax) == "Z\\");
  }
  CHECK(members("[a&&b]", RegexSyntax::kEcma) == "&ab");
  CHECK(matches("[a[b]c]", "[c]"));
  RegexPool pool;
  const auto refused = [&](const std::string& pattern, RegexSyntax syntax) {
    CHECK_THROWS_AS(parse_regex(pool, pattern, RegexUse::kWhole, syntax), Error);
  };
  refused("[[:alpha:]]", RegexSyntax::kEcma);
  for (const RegexSyntax syntax : {RegexSyntax::kRustClasses, RegexSyntax::kRust}) {
    refused("[[:alpha:]", syntax);
    refused("[[:letters:]]", syntax);
    refused("[a-z&&[^b]", syntax);
  }
}

TEST_CASE("a_dot_is_no_line_end_of_its_dialect") {
  CHECK(members("(?-s:.)", RegexSyntax::kRust).size() == 126);
  CHECK(members(".", RegexSyntax::kRustClasses).size() == 125);
}

TEST_CASE("spellings_of_json_strings_stand_for_their_texts") {
  RegexPool pool;
  const Regex body =
      pool.json_escaped(parse_regex(pool, "[a-c\"\\n\U0001F600]{2}", RegexUse::kWhole));
  CHECK(pool.matches(body, "ab"));
  CHECK(pool.matches(body, "a\\\""));
  CHECK(pool.matches(body, "\\n\\u000A"));
  CHECK(pool.matches(body, "\\u000a\\u0022"));
  CHECK(pool.matches(body, "a\U0001F600"));
  CHECK_FALSE(pool.matches(body, "a\""));
  CHECK_FALSE(pool.matches(body, "a\n"));
  CHECK_FALSE(pool.matches(body, "a\\t"));      // not a text of it
  CHECK_FALSE(pool.matches(body, "a\\u0061"));  // needless
  CHECK_FALSE(pool.matches(body, "a\\/"));
  CHECK_FALSE(pool.matches(body, "a\\uD83D"));
  const Regex letters = pool.json_escaped(parse_regex(pool, "[a-z]", RegexUse::kWhole));
  CHECK(pool.is_empty(pool.both(letters, parse_regex(pool, "\\\\.*", RegexUse::kWhole))));
  const Regex never = pool.both(letters, parse_regex(pool, "[0-9]*", RegexUse::kWhole));
  CHECK(pool.is_empty(pool.json_escaped(never)));
}

TEST_CASE("emptiness_is_found") {
  RegexPool pool;
  const Regex letters = parse_regex(pool, "[a-z]{0,1000}", RegexUse::kWhole);
  CHECK_FALSE(pool.is_empty(letters));
  CHECK(pool.is_empty(pool.both(letters, parse_regex(pool, "[0-9]+", RegexUse::kWhole))));
  CHECK_FALSE(pool.is_empty(pool.without(letters, pool.literal("abc"))));
  CHECK(pool.is_empty(pool.without(letters, parse_regex(pool, "[a-z]*", RegexUse::kWhole))));
  CHECK(pool.dfa(pool.without(pool.literal("a"), letters)).states.empty());
}

TEST_CASE("refusals_say_where_and_what") {
  RegexPool pool;
  const auto message = [&](const std::string& pattern) {
    try {
      parse_regex(pool, pattern, RegexUse::kWhole);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK_THAT(message("ab(c"), Catch::Contains("character 3") && Catch::Contains("without \")\""));
  CHECK_THAT(message("a\\1"), Catch::Contains("back reference"));
  CHECK_THAT(message("(?<=a)b"), Catch::Contains("look-behind"));
  CHECK_THAT(message("\\p{Nonsense}"), Catch::Contains("property"));
  CHECK_THAT(message("a**"), Catch::Contains("quantifier after a quantifier"));
  CHECK_THAT(message("[z-a]"), Catch::Contains("ends before it begins"));
}

}  // namespace tgi::guide
