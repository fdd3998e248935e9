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
  std::string doubling = "root ::= r0\nr60 ::= \"a\"\n";
  for (int i = 0; i < 60; ++i) {
    const std::string next = "r" + std::to_string(i + 1);
    doubling += "r" + std::to_string(i) + " ::= " + next + " " + next + "\n";
  }
  CHECK_THAT(refusal(add_gbnf, doubling),
             Catch::Contains("the shortest text of the rule \"root\" has more than 1000000000"));
  CHECK_THAT(refusal(read_lark, " \n"), Catch::Contains("it is empty: expected rules"));
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
  CHECK(accepts(read_lark, "start: /[[:alpha:]_][[:alnum:]_]*/", "ab_1"));
  CHECK_FALSE(accepts(read_lark, "start: /[[:alpha:]_][[:alnum:]_]*/", "a]]"));
  CHECK(accepts(read_lark, "start: /a.b/", "a\u2028b"));
  CHECK(accepts(read_lark, "start: /a.b/", "a\rb"));
  CHECK_FALSE(accepts(read_lark, "start: /a.b/", "a\nb"));
  CHECK(accepts(read_lark, "start: A\nA: /[a-z]+/ & ~\"if\"\n", "ifx"));
  CHECK_FALSE(accepts(read_lark, "start: A\nA: /[a-z]+/ & ~\"if\"\n", "if"));
}

TEST_CASE("strings_of_lark_have_the_escapes_of_json") {
  CHECK(accepts(read_lark, R"(start: "\u00e4\ud83d\ude00\/\t\"")", "\u00e4\U0001F600/\t\""));
  for (const char* const half :
       {R"("\ud83d")", R"("\ud83dx")", R"("\ude00")", R"("\ud83d\u0041")"}) {
    CHECK_THAT(refusal(read_lark, std::string("start: ") + half),
               Catch::Contains("line 1, column 9: expected a character of Unicode"));
  }
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

TEST_CASE("rules_of_lark_with_a_stop_have_the_texts_without_it") {
  const std::string ended = "start: text \"<end>\"\ntext[stop=\"<end>\"]: /(.|\\n)*/\n";
  CHECK(accepts(read_lark, ended, "a\nb<end>"));
  CHECK(accepts(read_lark, ended, "<end>"));
  CHECK_FALSE(accepts(read_lark, ended, "a<end>b<end>"));
  CHECK_FALSE(accepts(read_lark, ended, "a"));
  const std::string other = "start: text[\"b\"]\ntext[capture, stop=/[;,]/]: /[^b]*/\n";
  CHECK(accepts(read_lark, other, "foob"));
  CHECK(accepts(read_lark, other, "foo"));
  CHECK_FALSE(accepts(read_lark, other, "fo,o"));
  // The empty stop is the end of an answer: all texts are there.
  CHECK(accepts(read_lark, "start: a \"b\"\na[stop=\"\"]: /[ac]*/\n", "acab"));
}

TEST_CASE("lark_within_lark_is_a_grammar_by_itself") {
  const std::string nested =
      "start: /[ab]+/ foobar \"!\"\nfoobar: %lark {\n  start: X | \"Bar\" # }\n  X: \"foo\"\n"
      "  %ignore / /\n}\nX: \"not this\"\n";
  for (const char* text : {"afoo!", "abfoo !", "aaaaaaBar!"})
    CHECK(accepts(read_lark, nested, text));
  for (const char* text : {"a!", "anot this!", "a foo!"})
    CHECK_FALSE(accepts(read_lark, nested, text));
  CHECK(accepts(read_lark, "start: (%lark { start: \"a\" | start \"b\" } \";\"){2}", "ab;a;"));
}

TEST_CASE("grammars_of_a_list_name_each_other") {
  const std::string list = R"({"grammars": [
      {"lark_grammar": "start: \"f(\" @arguments \")\" | @word"},
      {"name": "arguments", "json_schema": {"type": "array", "items": {"const": 1}}},
      {"name": "word", "lark_grammar": "start: /[a-z]+/ [\"-\" @word]"}]})";
  for (const char* text : {"f([1,1])", "a-bc-d"}) CHECK(accepts(read_lark, list, text));
  for (const char* text : {"f([2])", "a-", "f("}) CHECK_FALSE(accepts(read_lark, list, text));
  CHECK(accepts(read_lark, R"({"grammars": [{"json_schema": {"const": "::="}}]})", "\"::=\""));
}

TEST_CASE("rules_of_lark_with_a_number_have_a_copy_for_each") {
  const std::string permutation =
      "start : perm::0x0\nperm::_ : \"\" %if is_ones([0:3])\n"
      "  | \"a\" perm::set_bit(0) %if bit_clear(0)\n"
      "  | \"b\" perm::set_bit(1) %if bit_clear(1)\n"
      "  | \"c\" perm::set_bit(2) %if not(bit_set(2))\n";
  for (const char* text : {"abc", "cab", "bca"}) CHECK(accepts(read_lark, permutation, text));
  for (const char* text : {"ab", "aab", "abca", ""})
    CHECK_FALSE(accepts(read_lark, permutation, text));

  const std::string counted =
      "start: aa::0\naa::_: \"a\" aa::incr(_) %if lt(_, 20)\n | bb::_\n"
      "bb::_: \"b\" bb::incr(_) %if lt(_, 20)\n | \"\"\n";
  CHECK(accepts(read_lark, counted, "aaabb"));
  CHECK(accepts(read_lark, counted, std::string(12, 'a') + std::string(8, 'b')));
  CHECK_FALSE(accepts(read_lark, counted, std::string(13, 'a') + std::string(8, 'b')));
  CHECK_FALSE(accepts(read_lark, counted, "aba"));

  const std::string chosen =
      "start: some::0\nsome::_: \"\" %if and(bit_count_ge(_, 1), bit_count_le([0:3], 2))\n"
      "  | (\"a\" some::set_bit(0) %if bit_clear(0) | \"b\" some::set_bit(1) %if bit_clear(1)\n"
      "  | \"c\" some::bit_or(4) %if eq([2:3], 0))\n";
  for (const char* text : {"a", "cb", "ba"}) CHECK(accepts(read_lark, chosen, text));
  for (const char* text : {"", "abc", "aa"}) CHECK_FALSE(accepts(read_lark, chosen, text));

  const std::string down =
      "start: \"<\" left::0x2 \">\" \"!\"\nleft::_: \"\" %if or(is_zeros(_), ne(_, _x))\n";
  CHECK_THAT(refusal(read_lark, down), Catch::Contains("expected a number"));
  const std::string steps =
      "start: n::18446744073709551615\nn::_: \"x\" n::bit_and(3) %if gt(_, 3)\n"
      "  | \"y\" n::decr([0:2]) %if and(le(_, 3), ge(_, 1))\n | \"z\" %if is_zeros([0:2])\n";
  CHECK(accepts(read_lark, steps, "xyyyz"));
  CHECK_FALSE(accepts(read_lark, steps, "xyyz"));
  CHECK_FALSE(accepts(read_lark, steps, "xyyyyz"));
  const std::string stays =
      "start: n::1\nn::_: \"+\" n::incr([0:1]) | \"=\" %if eq(_, 1) | \"-\" n::clear_bit(0)\n"
      "  | \".\" n::decr([0:64]) %if eq(_, 0)\n";
  CHECK(accepts(read_lark, stays, "++="));
  CHECK(accepts(read_lark, stays, "-..+="));
  CHECK_FALSE(accepts(read_lark, stays, "-="));
}

TEST_CASE("lazy_rules_of_lark_end_as_soon_as_they_can") {
  const char* const lazy =
      "start: head /[0-9]+/ end\nhead[lazy]: /(.|\\n)*/ \"<f=\"\nend[suffix=\"</f>\"]: /.*/\n";
  CHECK(accepts(read_lark, lazy, "a\nb<f=12 x</f>"));
  CHECK(accepts(read_lark, lazy, "<f=1</f>"));
  CHECK_FALSE(accepts(read_lark, lazy, "<f=a<f=1</f>"));
  CHECK_FALSE(accepts(read_lark, lazy, "<f=1</f>x</f>"));
  CHECK_FALSE(accepts(read_lark, lazy, "<f=1"));
  const char* const suffix =
      "start: word \"!\"\nword[suffix=END, stop_capture=\"e\", capture]: /[a-z]*/\nEND: /[xy]/\n";
  CHECK(accepts(read_lark, suffix, "abx!"));
  CHECK(accepts(read_lark, suffix, "y!"));
  CHECK_FALSE(accepts(read_lark, suffix, "abxy!"));
  CHECK_FALSE(accepts(read_lark, suffix, "ab!"));
  CHECK(accepts(read_lark, "start: digit \"2\"\ndigit[lazy]: /[0-9]+/\n", "12"));
  CHECK_FALSE(accepts(read_lark, "start: digit \"2\"\ndigit[lazy]: /[0-9]+/\n", "112"));
}

TEST_CASE("parts_of_a_text_of_llguidance") {
  const std::string chunks =
      "start: %regex {\"substring_chunks\": [\"ab\", \"c\", \"ab\", \"\"]} \"!\"\n";
  for (const char* text : {"!", "ab!", "c!", "abc!", "cab!", "abcab!"}) {
    INFO(text);
    CHECK(accepts(read_lark, chunks, text));
  }
  for (const char* text : {"a!", "ac!", "abab!", "bc!", "abcabc!"}) {
    INFO(text);
    CHECK_FALSE(accepts(read_lark, chunks, text));
  }
  const char* const words =
      "start: S\nS: %regex {\"substring_words\": \"foo  bar.,baz a-b \\u00e91_x's\"}";
  for (const char* text : {"", "foo", "  bar", "bar.,baz a", ".,", "-", "\u00e91_x'", "s"}) {
    INFO(text);
    CHECK(accepts(read_lark, words, text));
  }
  for (const char* text : {" bar", "bar.", ",", "az", "\u00e9", "1_x", "foo bar"}) {
    INFO(text);
    CHECK_FALSE(accepts(read_lark, words, text));
  }
  CHECK(accepts(read_lark, "start: (%regex {\"substring_chars\": \"a\\u00e9c\"} \";\")+",
                "\u00e9c;a;"));
  CHECK_FALSE(accepts(read_lark, "start: %regex {\"substring_chars\": \"abc\"}", "ac"));
  // Long: each part is in one of many blocks.
  std::string text;
  for (int i = 0; i < 2500; ++i) text += (i > 0 ? " w" : "w") + std::to_string(i);
  const std::string grammar = "start: %regex {\"substring_words\": \"" + text + "\"}";
  const size_t begin = text.find("w777");
  CHECK(accepts(read_lark, grammar, text.substr(begin, text.find(" w1500") - begin)));
  CHECK(accepts(read_lark, grammar, "w2499"));
  CHECK(accepts(read_lark, grammar, "w48 w49 w50 w51 w52"));
  CHECK_FALSE(accepts(read_lark, grammar, "w48 w50"));
}

TEST_CASE("what_is_skipped_in_lark") {
  const std::string twice = "%ignore / {1,2}/\nstart: \"a\" \"b\"\n";
  CHECK(accepts(read_lark, twice, "a    b"));
  const std::string once = "%llguidance {\"skip_repetition\": \"once\"}\n%llguidance {}\n" + twice;
  CHECK(accepts(read_lark, once, "a  b "));
  CHECK(accepts(read_lark, once, "ab"));
  CHECK_FALSE(accepts(read_lark, once, "a   b"));
  CHECK_THAT(refusal(read_lark, "%llguidance {\"skip_repetition\": 3}\n" + twice),
             Catch::Contains("expected \"once\""));
}

// In the style of the files that llama.cpp's users have.
TEST_CASE("gbnf_files_are_read") {
  const char* const list =
      "# a list of at most three things, and who says so\n"
      "root ::= item{1,3} signature?\n\n"
      "item ::=\n  \"- \" [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ \"\\n\" # one a line\n"
      "signature ::= (\"-- \" name) | (\n  \"by \"\n  name\n)\n"
      "name ::= [A-Z\\u00C0-\\u00DE] [a-z\\-]* | [\\U0001F600-\\U0001F64F]";
  CHECK(accepts(add_gbnf, list, "- a\n- \"b\"\nby Ann-marie"));
  CHECK(accepts(add_gbnf, list, "- \u00e9\n-- \U0001F601"));
  CHECK_FALSE(accepts(add_gbnf, list, "- a\n- b\n- c\n- d\n"));
  CHECK_FALSE(accepts(add_gbnf, list, "- \n"));
  const char* const json =
      "root   ::= object\r\n"
      "value  ::= object | array | string | number | (\"true\" | \"false\" | \"null\") ws\r\n"
      "object ::= \"{\" ws ( string \":\" ws value (\",\" ws string \":\" ws value)* )? \"}\" "
      "ws\r\n"
      "array  ::= \"[\" ws ( value (\",\" ws value)* )? \"]\" ws\r\n"
      "string ::= \"\\\"\" ( [^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" ([\"\\\\bfnrt/] | \"u\" "
      "[0-9a-fA-F]{4}) )* \"\\\"\" ws\r\n"
      "number ::= (\"-\"? ([0-9] | [1-9] [0-9]{0,15})) (\".\" [0-9]+)? ([eE] [-+]? [0-9]{1,3})? "
      "ws\r\n"
      "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\r\n";
  CHECK(accepts(add_gbnf, json, "{\"a\": [1, -2.5e+3, \"\\u00e9\\n\"],\n  \"b\": {}} "));
  CHECK_FALSE(accepts(add_gbnf, json, "{\"a\":  1}"));
  CHECK_FALSE(accepts(add_gbnf, json, "[1]"));
  const char* const code =
      "root ::= (assign | call)+\n"
      "assign ::= ident ws \"=\" ws expr ws \";\" ws\ncall ::= ident \"(\" (expr (\",\" ws "
      "expr)*)? \")\" ws \";\" ws\n"
      "expr ::= expr ws [-+*/%] ws expr | ident | [0-9]+ | \"(\" ws expr ws \")\" | \"'\" . \"'\"\n"
      "ident ::= [a-zA-Z_] [a-zA-Z_0-9]*\nws ::= [ \\t\\n]*\n";
  CHECK(accepts(add_gbnf, code, "x = (1 + y)*2;\nprint(x, '\u00e9');"));
  CHECK_FALSE(accepts(add_gbnf, code, "x = 1 +;"));
  CHECK(accepts(add_gbnf, "root ::= \"a\"{2,} \"b\"{,2} \"c\"{2}", "aaabcc"));
  CHECK_FALSE(accepts(add_gbnf, "root ::= \"a\"{2,} \"b\"{,2} \"c\"{2}", "abcc"));
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
  CHECK_THAT(refusal(read_lark, "start: %regex {}"), Catch::Contains("substring_words"));
  CHECK_THAT(refusal(read_lark, "start: A\nA: %lark { start: \"a\" }"),
             Catch::Contains("only be used in a rule"));
  CHECK_THAT(refusal(read_lark, "start: %lark { start: \"a\"\n"), Catch::Contains("without its"));
  CHECK_THAT(refusal(read_lark, "start: %lark {\n  x: \"a\"\n}\n"),
             Catch::Contains("line 3") && Catch::Contains("no rule \"start\""));
  CHECK_THAT(refusal(read_lark, "start[stop=\"x\", suffix=\"y\"]: /a*/\n"),
             Catch::Contains("ends in one way"));
  CHECK_THAT(refusal(read_lark, "start: @other\n"), Catch::Contains("no grammar is named"));
  CHECK_THAT(refusal(read_lark, R"({"grammars": [{"lark_grammar": "start: 1"}]})"),
             Catch::Contains("the grammar, line 1, column 8"));
  CHECK_THAT(refusal(read_lark, R"({"grammars": [{"lark_grammar": "start: @a"},)"
                                R"({"name": "a", "lark_grammar": "start: b"}]})"),
             Catch::Contains("the grammar \"a\", line 1, column 8"));
  CHECK_THAT(
      refusal(read_lark, R"({"grammars": [{"lark_grammar": "start: \"a\""}], "max_tokens": 3})"),
      Catch::Contains("\"max_tokens\" of the list"));
  CHECK_THAT(refusal(read_lark, R"({"grammars": []})"), Catch::Contains("at least one"));
  CHECK_THAT(refusal(read_lark, R"({"grammars": [{}]})"), Catch::Contains("either"));
  CHECK_THAT(refusal(read_lark, R"({"grammars": )"), Catch::Contains("line 1"));
  const std::string ends_early = R"({"grammars": [{"json_schema": {}}]})";
  CHECK_THAT(refusal(read_lark, ends_early + std::string(1, '\0') + " {}"),
             Catch::Contains("line 1, column 36: a zero byte"));
  CHECK_THAT(refusal(read_lark, "start: %json {\"const\": " + std::string(1, '\0') + "}\n"),
             Catch::Contains("not valid JSON"));
  CHECK_THAT(refusal(read_lark, R"({"grammars": [{"name": "a", "json_schema": {}}, )"
                                R"({"name": "a", "json_schema": {}}]})"),
             Catch::Contains("two grammars"));
  CHECK_THAT(refusal(read_lark, R"({"grammars": [{"json_schema": {"type": "x"}}]})"),
             Catch::Contains("the grammar: "));
  // Rules with a number.
  CHECK_THAT(refusal(read_lark, "start: a\na::_: \"x\"\n"), Catch::Contains("needs a number"));
  CHECK_THAT(refusal(read_lark, "start: a::1\na: \"x\"\n"), Catch::Contains("has no parameter"));
  CHECK_THAT(refusal(read_lark, "start: a::_\na::_: \"x\"\n"),
             Catch::Contains("expected a number"));
  CHECK_THAT(refusal(read_lark, "start: \"x\" %if is_ones(_)\n"), Catch::Contains("no parameter"));
  CHECK_THAT(refusal(read_lark, "start::_: \"x\"\n"), Catch::Contains("can't have a parameter"));
  CHECK_THAT(refusal(read_lark, "start: a::1\na::_: \"x\" %if odd(_)\n"),
             Catch::Contains("line 2, column 15") && Catch::Contains("isn't known"));
  CHECK_THAT(refusal(read_lark, "start: a::twice(3)\na::_: \"x\"\n"),
             Catch::Contains("isn't known"));
  CHECK_THAT(refusal(read_lark, "start: a::set_bit(64)\n"), Catch::Contains("at most 63"));
  CHECK_THAT(refusal(read_lark, "start: a::1\na::_: \"x\" %if eq([3:3], 0)\n"),
             Catch::Contains("end before they begin"));
  CHECK_THAT(refusal(read_lark, "start: a::99999999999999999999\n"), Catch::Contains("64 bits"));
  CHECK_THAT(refusal(read_lark, "start: a::0\na::_: \"x\" a::incr(_) | \"y\"\n"),
             Catch::Contains("different numbers"));
  CHECK_THAT(refusal(read_lark, "start: a{b}\na{x}: x\nb: \"y\"\n"), Catch::Contains("templates"));
  CHECK_THAT(refusal(read_lark, "start[max_tokens=3]: /a*/\n"),
             Catch::Contains("limit the characters"));
  CHECK_THAT(refusal(read_lark, "start[lazy]: \"a\" b\nb: \"c\"\n"),
             Catch::Contains("can't be made of the rule \"b\""));
  CHECK_THAT(refusal(read_lark, "start[suffix]: /a*/\n"),
             Catch::Contains("what the rule ends with"));
  CHECK_THAT(refusal(read_lark, "start: A\nA[lazy]: /a*/\n"), Catch::Contains("A is a terminal"));
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
