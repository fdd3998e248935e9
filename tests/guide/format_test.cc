// Grammars as they are written: GBNF and Lark, what they accept and how they are refused.
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/guide/gbnf.h"
#include "engine/guide/lark.h"
#include "tests/catch.h"
#include "tests/guide/vocabularies.h"

namespace tgi::guide {
namespace {

using Reader = Rule (*)(Grammar&, std::string_view);

Rule read_lark(Grammar& grammar, std::string_view text) {
  return add_lark(grammar, text);
}

bool accepts(Reader read, const std::string& text, const std::string& answer) {
  static const auto vocabulary = [] {
    std::vector<std::string> bytes;
    for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
    return vocabulary_of(bytes);
  }();
  Grammar grammar;
  grammar.set_start(read(grammar, text));
  Matcher matcher(compile_grammar(grammar), vocabulary);
  for (const char c : answer) {
    if (!matcher.accept(static_cast<uint8_t>(c))) return false;
  }
  return matcher.can_end();
}

std::string refusal(Reader read, const std::string& text) {
  try {
    accepts(read, text, "");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("gbnf_is_read_as_its_users_write_it") {
  const std::string grammar =
      "# a list\n"
      "root ::= item (\",\" ws item)*  # of items\n"
      "item ::= [a-zA-Z_\\-]{2,4} |\n"
      "  \"\\\"\" [^\"\\n\\\\]* \"\\\"\"\n"
      "  | (\n \"(\" root \")\"\n )\n"
      "ws ::= [ \\t]?\n";
  CHECK(accepts(add_gbnf, grammar, "ab, c-d,\"\u00e4 \""));
  CHECK(accepts(add_gbnf, grammar, "(ab,(\"\"))"));
  CHECK_FALSE(accepts(add_gbnf, grammar, "a"));
  CHECK_FALSE(accepts(add_gbnf, grammar, "abcde"));
  CHECK_FALSE(accepts(add_gbnf, grammar, "(ab"));
  CHECK(accepts(add_gbnf, "root ::= \"\\x41\\u00e4\\U0001F600\" .+", "A\u00e4\U0001F600\u00fc"));
  // Left recursion, direct and by way of another rule.
  CHECK(
      accepts(add_gbnf, "root ::= root \"+\" t | t\nt ::= root \"*\" \"x\" | \"x\"", "x+x*x*x+x"));
  CHECK_FALSE(
      accepts(add_gbnf, "root ::= root \"+\" t | t\nt ::= root \"*\" \"x\" | \"x\"", "x+*x"));
}

TEST_CASE("errors_of_gbnf_say_where") {
  CHECK_THAT(refusal(add_gbnf, "root ::= \"a\n"), Catch::Contains("line 1, column 10"));
  CHECK_THAT(refusal(add_gbnf, "root ::= a\nb ::= \"x\"\n"),
             Catch::Contains("\"a\" is used and not defined"));
  CHECK_THAT(refusal(add_gbnf, "root ::= \"a\"\nroot ::= \"b\"\n"),
             Catch::Contains("line 2") && Catch::Contains("second time"));
  CHECK_THAT(refusal(add_gbnf, "start ::= \"a\""), Catch::Contains("no rule \"root\""));
  CHECK_THAT(refusal(add_gbnf, "root ::= (\"a\" "), Catch::Contains("expected \")\""));
  CHECK_THAT(refusal(add_gbnf, "root ::= [b-a]"), Catch::Contains("ends before it begins"));
  CHECK_THAT(refusal(add_gbnf, "root ::= root"), Catch::Contains("root"));
  CHECK_THAT(refusal(add_gbnf, "root ::= \"a\" root"), Catch::Contains("needs itself without end"));
  CHECK_THAT(refusal(add_gbnf, "root ::= <[1x]>"), Catch::Contains("line 1, column 13"));
}

TEST_CASE("lark_is_read_as_its_users_write_it") {
  const std::string grammar =
      "%import common.INT\n"
      "%import common.WS_INLINE -> SPACE\n"
      "%ignore SPACE\n"
      "?start: sum  // the whole\n"
      "?sum: product\n"
      "    | sum \"+\" product -> add\n"
      "    | sum \"-\" product\n"
      "product: atom (\"*\" atom)~0..2\n"
      "atom: INT | NAME | \"(\" sum \")\" | [\"-\"] \"pi\"i\n"
      "NAME: LETTER (LETTER | \"0\"..\"9\")*\n"
      "LETTER: /[a-z]/\n";
  CHECK(accepts(read_lark, grammar, "12 + a1*(b - PI) "));
  CHECK(accepts(read_lark, grammar, "a*b*c"));
  CHECK_FALSE(accepts(read_lark, grammar, "a*b*c*d"));
  CHECK_FALSE(accepts(read_lark, grammar, " a"));  // not before the first
  CHECK_FALSE(accepts(read_lark, grammar, "a +"));
  CHECK(accepts(read_lark, "start: /a\\/b+/i \"\\n\"", "A/bB\n"));
  CHECK(accepts(read_lark, "start: A\nA: /[a-z]+/ & ~\"if\"\n", "ifx"));
  CHECK_FALSE(accepts(read_lark, "start: A\nA: /[a-z]+/ & ~\"if\"\n", "if"));
}

TEST_CASE("lark_of_llguidance_is_read") {
  const std::string grammar =
      "%llguidance {\"no_forcing\": true, \"allow_initial_skip\": true}\n"
      "%import common (INT, WS_INLINE)\n"
      "%ignore WS_INLINE\n"
      "start[capture, capture=\"all\"]: \"f\" \"(\" %json {\n"
      "  \"type\": \"object\",\n"
      "  \"properties\": {\"}\\\"\": {\"enum\": [\"{\", 1]}},\n"
      "  \"required\": [\"}\\\"\"]\n"
      "} \")\" INT\n";
  CHECK(accepts(read_lark, grammar, "f({\"}\\\"\":\"{\"})1"));
  CHECK(accepts(read_lark, grammar, "  f ( {\"}\\\"\":1} ) 12 "));
  CHECK_FALSE(accepts(read_lark, grammar, "f({\"}\\\"\":2})1"));
  CHECK(accepts(read_lark, "start: %json {\"type\": \"boolean\"} | <[97]> \"!\"", "a!"));
  CHECK(accepts(read_lark, "start: (%json {\"const\": 1} \";\")~2", "1;1;"));
  CHECK_FALSE(accepts(read_lark, "start: %json {\"type\": \"boolean\"}", "tru"));
  CHECK(accepts(read_lark, "start: %json true", "[1]"));
}

TEST_CASE("errors_of_lark_say_where") {
  CHECK_THAT(refusal(read_lark, "begin: \"a\""), Catch::Contains("no rule \"start\""));
  CHECK_THAT(refusal(read_lark, "start: A\n"),
             Catch::Contains("line 1, column 8") && Catch::Contains("not defined"));
  CHECK_THAT(refusal(read_lark, "start: A\nA: \"a\" A\n"), Catch::Contains("defined by itself"));
  CHECK_THAT(refusal(read_lark, "start: A\nA: b\nb: \"x\"\n"),
             Catch::Contains("can't be made of the rule"));
  CHECK_THAT(refusal(read_lark, "start: /a(/\n"),
             Catch::Contains("line 1") && Catch::Contains("without \")\""));
  CHECK_THAT(refusal(read_lark, "%declare A\nstart: A"), Catch::Contains("%declare"));
  CHECK_THAT(refusal(read_lark, "start: \"a\"\n%import common.NOTHING\n"),
             Catch::Contains("NOTHING"));
  CHECK_THAT(refusal(read_lark, "start[temperature=1]: \"a\"\n"),
             Catch::Contains("\"temperature\""));
  CHECK_THAT(refusal(read_lark, "start: %json {\"type\": \"x\"}\n"),
             Catch::Contains("line 1, column 8") && Catch::Contains("#/type"));
  CHECK_THAT(refusal(read_lark, "start: \"a\"\n  | %json {\"type\": }\n"),
             Catch::Contains("line 2, column 11"));
  CHECK_THAT(refusal(read_lark, "start: %json {\"a\": \"}\n"), Catch::Contains("without its end"));
  CHECK_THAT(refusal(read_lark, "start: %json 5"), Catch::Contains("expected \"{\""));
  CHECK_THAT(refusal(read_lark, "start: A\nA: %json {}"),
             Catch::Contains("only be used in a rule"));
  CHECK_THAT(refusal(read_lark, "start: %regex {}"), Catch::Contains("%json is"));
  CHECK_THAT(refusal(read_lark, "%llguidance {\"x\": true}\nstart: \"a\""),
             Catch::Contains("\"x\""));
  CHECK_THAT(refusal(read_lark, "%llguidance {\"no_forcing\": 1}\nstart: \"a\""),
             Catch::Contains("true or false"));
  CHECK_THAT(refusal(read_lark, "%import other (A)\nstart: \"a\""), Catch::Contains("\"common\""));
  CHECK_THAT(refusal(read_lark, "%import common (INT\nstart: \"a\""), Catch::Contains("\")\""));
  CHECK_THAT(refusal(
                 read_lark, "start: " +
                                [] {
                                  std::string deep = "%json ";
                                  for (int i = 0; i < 500; ++i) deep += "[";
                                  return deep;
                                }()),
             Catch::Contains("nested deeper"));
}

}  // namespace tgi::guide
