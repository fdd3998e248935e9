// Oniguruma's syntax on PCRE2. Expectations are what the `tokenizers` library finds.
#include "engine/text/unicode/regex.h"

#include "base/error.h"
#include "tests/catch.h"

namespace tgi {
namespace {

std::vector<std::string> found(const std::string& pattern, const std::string& text) {
  std::vector<TextRange> ranges;
  Regex(pattern).find_all(text, ranges);
  std::vector<std::string> matches;
  for (const TextRange& range : ranges) matches.emplace_back(range.in(text));
  return matches;
}

using Matches = std::vector<std::string>;

TEST_CASE("classes nest, unite and intersect") {
  CHECK(found("[a-z&&[^aeiou]]+", "hello there") == Matches{"h", "ll", "th", "r"});
  CHECK(found("[a[bc]]+", "abcd[") == Matches{"abc"});
  CHECK(found("[^(a|[b])]+", "xaby(z") == Matches{"x", "y", "z"});
  CHECK(found("[a-w&&[^c-g]z]+", "abcdefghxz") == Matches{"ab", "h"});
}

TEST_CASE("escapes mean what they mean in Ruby") {
  CHECK(found(R"(\h+)", "xFf0g") == Matches{"Ff0"});
  CHECK(found(R"(\v)", "a\vb\n") == Matches{"\v"});
  CHECK(found(R"(\u0041\x42\x{43}\n)", "ABC\n") == Matches{"ABC\n"});
  CHECK(found(R"(\s)", "a\xC2\x85\xE1\xA0\x8E") == Matches{"\xC2\x85"});  // U+0085, not U+180E
}

TEST_CASE("words and punctuation are other sets within brackets") {
  const std::string text = "a$\xC2\xBD\xC2\xB2.b";  // a$½².b
  CHECK(found(R"(\w+)", text) == Matches{"a", "\xC2\xBD\xC2\xB2", "b"});
  CHECK(found(R"(\p{Word}+)", text) == Matches{"a", "\xC2\xBD\xC2\xB2", "b"});
  CHECK(found(R"(\W+)", text) == Matches{"$", "."});
  CHECK(found(R"([\w]+)", text) == Matches{"a", "b"});
  CHECK(found(R"([^\p{Word}]+)", text) == Matches{"$\xC2\xBD\xC2\xB2."});
  CHECK(found(R"([^\w\s]+)", text) == Matches{"$\xC2\xBD\xC2\xB2."});
  CHECK(found("[[:word:]]+", text) == Matches{"a", "b"});
  CHECK(found(R"(\p{Punct})", text) == Matches{"."});
  CHECK(found(R"([\p{Punct}])", text) == Matches{"."});
  CHECK(found("[[:punct:]]", text) == Matches{"$", "."});
  CHECK(found("[[:^punct:]]", "a$.") == Matches{"a"});
}

TEST_CASE("anchors are at lines, the dot matches no line feed unless told to") {
  CHECK(found("^.", "ab\ncd") == Matches{"a", "c"});
  CHECK(found(".$", "ab\ncd") == Matches{"b", "d"});
  CHECK(found("b.c", "b\nc").empty());
  CHECK(found("(?m:b.c)", "b\nc") == Matches{"b\nc"});
}

TEST_CASE("an option in the middle holds for all alternatives that follow") {
  CHECK(found("a(?i)b|c", "aB C aC") == Matches{"aB", "aC"});
  CHECK(found("(?:a(?i)b|c)d", "aBd aCd aBD") == Matches{"aBd", "aCd"});
}

TEST_CASE("a plus after an interval repeats it instead of forbidding to go back") {
  CHECK(found(R"(\d{2}+)", "12345") == Matches{"1234"});
  CHECK(found(R"(\d{1,3}+5)", "12345") == Matches{"12345"});
  CHECK(found(R"(a{,2}b)", "aaab b") == Matches{"aab", "b"});
  CHECK(found(R"(a{,}b)", "a{,}b") == Matches{"a{,}b"});
  CHECK(found(R"(\d++5)", "12345").empty());
}

TEST_CASE("a script is the script itself, not its extensions") {
  CHECK(found(R"(\p{Han}+)", "\xE4\xB8\xAD\xE3\x80\x81") == Matches{"\xE4\xB8\xAD"});
  CHECK(found(R"(\p{^L}+)", "a1-b") == Matches{"1-"});
  CHECK(found(R"([\P{L}x]+)", "ax1b") == Matches{"x1"});
}

TEST_CASE("letters of Unicode 15 and 16 are letters") {
  const std::string ideograph = "\xF0\xB1\x8D\x90";  // U+31350
  CHECK(found(R"(\p{L}+)", "a" + ideograph + "1") == Matches{"a" + ideograph});
  CHECK(found(R"([^\s\p{L}]+)", "-" + ideograph + "-") == Matches{"-", "-"});
  CHECK(found(R"(\p{Cn})", ideograph).empty());
}

TEST_CASE("empty matches are found between characters, but not right after a match") {
  CHECK(found("x*", "axxb") == Matches{"", "xx", ""});
  CHECK(found("", "\xE4\xB8\xAD").size() == 2);
}

TEST_CASE("a long run needs no deep stack") {
  const std::string text = std::string(300000, 'a') + "b";
  CHECK(found("(?:a|b)+", text) == Matches{text});
  CHECK(found("(?:a(?=.)|b)+b", text) == Matches{text});
}

TEST_CASE("what is not supported is refused with its place") {
  for (const std::string pattern :
       {"(*FAIL)", "(?x: a)", "a)", "(a", "[a", "[b-a]", R"(\X)", R"(\p{)", R"(\p{NoSuchScript})",
        R"(\xFF)", R"(\uD800)", "(?~a)", "*a", R"(a\)", "(?<a", R"(\C)"}) {
    INFO(pattern);
    try {
      const Regex regex(pattern);
      CHECK(false);
    } catch (const Error& error) {
      CHECK(error.code() == Code::kUnsupported);
    }
  }
}

}  // namespace
}  // namespace tgi
