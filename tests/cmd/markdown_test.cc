#include "cmd/markdown.h"

#include <string>

#include "tests/catch.h"

namespace tgi {
namespace {

std::string rendered(const std::string& text, size_t width = 0, bool color = false) {
  Markdown markdown([width] { return width; }, color);
  std::string whole = markdown.add(text);
  whole += markdown.end();
  Markdown piecewise([width] { return width; }, color);
  std::string pieces;
  for (const char one : text) {
    // A character of several bytes comes whole; all of this test's are in the first 128 or whole
    // words, for which bytes do as well.
    pieces += piecewise.add(std::string(1, one));
  }
  pieces += piecewise.end();
  CHECK(pieces == whole);
  return whole;
}

}  // namespace

TEST_CASE("marks of markdown become what they mean") {
  CHECK(rendered("# A title\ntext") == "A title\ntext");
  CHECK(rendered("- one\n* two\n3. three\n") == "• one\n• two\n3. three\n");
  CHECK(rendered("  - deeper") == "  • deeper");
  CHECK(rendered("> said") == "│ said");
  CHECK(rendered("a **bold** and *soft* `co*de` word") == "a bold and soft co*de word");
  CHECK(rendered("2 * 3 and snake_case_name \\*plain\\*") == "2 * 3 and snake_case_name *plain*");
  CHECK(rendered("---\n") == "────────\n");
}

TEST_CASE("markdown is coloured and each line ends plain") {
  CHECK(rendered("**b** x", 0, true) == "\x1b[0m\x1b[1mb\x1b[0m x");
  CHECK(rendered("# T\nx", 0, true) == "\x1b[0m\x1b[1;34mT\x1b[0m\nx");
}

TEST_CASE("fenced code stands as it is, however long its lines") {
  CHECK(rendered("```cpp\nint  *a = **b;  // # not a title\n\n  | x\n```\nafter", 10) ==
        "int  *a = **b;  // # not a title\n\n  | x\nafter");
  CHECK(rendered("~~~\n```\n~~~\n") == "```\n");
  CHECK(rendered("```\nnever closed") == "never closed");
  CHECK(rendered("```x``` in a line") == "x in a line");
}

TEST_CASE("lines are broken between words, below where an item began") {
  CHECK(rendered("aaa bbb ccc", 7) == "aaa bbb\nccc");
  CHECK(rendered("- aaa bbb ccc", 9) == "• aaa bbb\n  ccc");
  CHECK(rendered("a verylongword b", 6) == "a\nverylongword\nb");
}

TEST_CASE("a word is written when it is whole, and a resized terminal counts at once") {
  size_t width = 80;
  Markdown markdown([&] { return width; }, false);
  CHECK(markdown.add("one tw").find("one") == 0);
  CHECK(markdown.add("o three").find(" two") == 0);
  width = 9;
  CHECK(markdown.add(" ") == "\nthree");
  CHECK(markdown.end() == "");
}

TEST_CASE("text without blanks is shown as it comes") {
  Markdown markdown([] { return size_t{80}; }, false);
  CHECK(markdown.add("你") == "你");
  CHECK(markdown.add("好") == "好");
}

TEST_CASE("tables are lined up") {
  CHECK(rendered("| a | long name |\n|---|:--|\n| wide cell | b |\n\nx") ==
        "a         │ long name\n──────────┼──────────\nwide cell │ b        \n\nx");
}

TEST_CASE("control characters of an answer do nothing to the terminal") {
  CHECK(without_controls("a\x1b]0;title\x07"
                         "b\r\b\x7f\tc\n") == "a]0;titleb\tc\n");
  CHECK(without_controls("x\xc2\x9b"
                         "31my\xe2\x80\xaez é") == "x31myz é");
  CHECK(rendered("\x1b[2Jhi") == "[2Jhi");
}

}  // namespace tgi
