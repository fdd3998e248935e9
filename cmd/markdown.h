// Markdown as it streams, for a terminal: headings, lists, quotes, rules, fenced code, emphasis,
// inline code and tables (CommonMark's and GitHub's, as far as can be told while the text comes; no
// HTML, no links by reference). Lines are broken between words at the edge of the terminal, whose
// width is asked for anew for each word. Belongs to one thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tgi {

class Markdown {
 public:
  // `width`: columns of the terminal; 0: lines are not broken. Without `color` marks are taken out
  // all the same, but nothing is coloured.
  Markdown(std::function<size_t()> width, bool color);

  // Takes some of the text, in whole UTF-8 characters, and returns what can be shown now: words go
  // out when they are whole, lines of code and tables likewise.
  std::string add(std::string_view text);
  std::string end();  // what is left

 private:
  enum class Block { kStart, kText, kTable, kCode };

  void take(char one);
  void begin_line();           // looks at the first word of a line
  void end_line();             // at its newline, or at the end of the text
  void put_word(bool at_end);  // word_, with its marks of emphasis made colours
  void put_table();
  void restyle();
  std::string style() const;

  const std::function<size_t()> width_;
  const bool color_;
  std::string out_;
  std::string word_;
  std::vector<std::string> table_;
  std::string fence_;  // that opened the code; empty: outside
  Block block_ = Block::kStart;
  size_t column_ = 0;
  size_t indent_ = 0;      // of the lines that go on an item
  size_t num_blanks_ = 0;  // before the next word
  char before_ = ' ';      // the last character of the text before word_
  bool heading_ = false;
  bool bold_ = false;
  bool italic_ = false;
  bool code_ = false;
};

// The text without control characters but newlines and tabs, and without those that reorder a line:
// no answer may move the cursor, or hide or set anything. Those of C1 are two bytes in UTF-8.
std::string without_controls(std::string_view text);

// Columns that a text takes on a terminal.
size_t count_columns(std::string_view text);

}  // namespace tgi
