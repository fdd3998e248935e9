#include "cmd/markdown.h"

#include <langinfo.h>

#include <algorithm>
#include <cctype>
#include <clocale>
#include <cstring>
#include <cwchar>
#include <utility>

namespace tgi {
namespace {

constexpr std::string_view kReset = "\x1b[0m";
constexpr std::string_view kCodeColor = "\x1b[36m";
constexpr std::string_view kSpaces = " \t";
constexpr std::string_view kRuleMarks = "-*_";

bool is_blank(char one) {
  return one == ' ' || one == '\t';
}

bool is_word_char(char one) {
  const auto byte = static_cast<unsigned char>(one);
  return byte >= 0x80 || std::isalnum(byte) != 0;
}

// "```" of a line that opens or closes code, as long as it is; else nothing.
std::string fence_of(std::string_view line) {
  const size_t begin = std::min(line.find_first_not_of(kSpaces), line.size());
  const std::string_view rest = line.substr(begin);
  if (rest.empty() || (rest[0] != '`' && rest[0] != '~')) return "";
  const size_t length = std::min(rest.find_first_not_of(rest[0]), rest.size());
  // "```code``` in a line" opens nothing.
  const bool is_inline = rest[0] == '`' && rest.find('`', length) != std::string_view::npos;
  return length < 3 || is_inline ? "" : std::string(rest.substr(0, length));
}

// Whether a line of code ends it.
bool closes(std::string_view line, std::string_view fence) {
  const std::string found = fence_of(line);
  if (found.size() < fence.size() || found[0] != fence[0]) return false;
  return line.find_first_not_of(" \t" + std::string(1, fence[0])) == std::string_view::npos;
}

// Whether the text ends with a character of a script that is written without blanks (U+3000 to
// U+D7FF), behind which a line may be broken.
bool ends_with_wide(std::string_view text) {
  if (text.size() < 3) return false;
  const auto lead = static_cast<unsigned char>(text[text.size() - 3]);
  return lead >= 0xe3 && lead <= 0xed;
}

bool is_rule(std::string_view word) {
  return word.size() >= 3 && kRuleMarks.find(word[0]) != std::string_view::npos &&
         word.find_first_not_of(word[0]) == std::string_view::npos;
}

// "1." or "12)".
bool is_number(std::string_view word) {
  if (word.size() < 2 || word.size() > 10 || (word.back() != '.' && word.back() != ')'))
    return false;
  return word.find_first_not_of("0123456789") == word.size() - 1;
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> out;
  line.remove_prefix(std::min(line.find('|'), line.size() - 1) + 1);
  while (!line.empty()) {
    const size_t end = std::min(line.find('|'), line.size());
    std::string_view cell = line.substr(0, end);
    const size_t begin = cell.find_first_not_of(kSpaces);
    cell = begin == std::string_view::npos
               ? std::string_view()
               : cell.substr(begin, cell.find_last_not_of(kSpaces) - begin + 1);
    if (end < line.size() || !cell.empty()) out.emplace_back(cell);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return out;
}

bool parts_head(const std::vector<std::string>& cells) {
  return std::all_of(cells.begin(), cells.end(), [](const std::string& cell) {
    return cell.find('-') != std::string::npos && cell.find_first_not_of(":-") == std::string::npos;
  });
}

}  // namespace

std::string without_controls(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const auto third = i + 2 < text.size() ? static_cast<unsigned char>(text[i + 2]) : 0;
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      ++i;
      continue;
    }
    // U+202A to U+202E, U+2066 to U+2069.
    if (byte == 0xe2 && ((next == 0x80 && third >= 0xaa && third <= 0xae) ||
                         (next == 0x81 && third >= 0xa6 && third <= 0xa9))) {
      i += 2;
      continue;
    }
    if ((byte >= 0x20 && byte != 0x7f) || byte == '\n' || byte == '\t') out += text[i];
  }
  return out;
}

size_t count_columns(std::string_view text) {
  size_t out = 0;
  std::mbstate_t state{};
  while (!text.empty()) {
    wchar_t one = 0;
    const size_t used = std::mbrtowc(&one, text.data(), text.size(), &state);
    if (used == 0 || used > text.size()) {  // a zero, or no character: one column
      state = {};
      ++out;
      text.remove_prefix(1);
      continue;
    }
    out += static_cast<size_t>(std::max(::wcwidth(one), 0));
    text.remove_prefix(used);
  }
  return out;
}

Markdown::Markdown(std::function<size_t()> width, bool color)
    : width_(std::move(width)), color_(color) {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

std::string Markdown::style() const {
  std::string out(kReset);
  if (heading_) out += "\x1b[1;34m";
  if (bold_) out += "\x1b[1m";
  if (italic_) out += "\x1b[3m";
  if (code_) out += kCodeColor;
  return out;
}

void Markdown::restyle() {
  if (color_) out_ += style();
}

std::string Markdown::add(std::string_view text) {
  for (const char one : without_controls(text)) take(one);
  return std::exchange(out_, "");
}

std::string Markdown::end() {
  if (block_ != Block::kStart || !word_.empty()) {
    const size_t before = out_.size();
    end_line();
    if (out_.size() > before && out_.back() == '\n') out_.pop_back();
  }
  put_table();
  fence_.clear();
  return std::exchange(out_, "");
}

void Markdown::take(char one) {
  if (one == '\n') return end_line();
  if (block_ == Block::kCode || block_ == Block::kTable) {
    word_ += one;
    return;
  }
  if (block_ == Block::kStart) {
    if (!fence_.empty()) block_ = Block::kCode;
    if (fence_.empty() && is_blank(one) && word_.empty()) {
      num_blanks_ += one == '\t' ? 4 : 1;
      return;
    }
    if (fence_.empty() && word_.empty() && one == '|') block_ = Block::kTable;
    const bool opens = word_.starts_with("```") || word_.starts_with("~~~");
    if (block_ != Block::kStart || !is_blank(one) || opens) {
      word_ += one;
      if (block_ == Block::kStart && ends_with_wide(word_)) begin_line();
      return;
    }
    begin_line();
    ++num_blanks_;
    return;
  }
  if (!is_blank(one)) {
    word_ += one;
    if (ends_with_wide(word_)) put_word(false);
    return;
  }
  put_word(false);
  ++num_blanks_;
}

void Markdown::begin_line() {
  put_table();
  block_ = Block::kText;
  indent_ = num_blanks_;
  const size_t length = word_.size();
  if (length <= 6 && word_.find_first_not_of('#') == std::string::npos) {
    heading_ = true;
    word_.clear();
    num_blanks_ = 0;
    restyle();
    // The blank behind the marks is not shown either: it is counted by the caller.
    column_ = 0;
    indent_ = 0;
    return;
  }
  std::string mark;
  if (word_ == "-" || word_ == "*" || word_ == "+") mark = "•";
  if (word_ == ">") mark = "│";
  if (is_number(word_)) mark = word_;
  if (mark.empty()) return put_word(false);
  out_ += std::string(num_blanks_, ' ') + mark;
  column_ = num_blanks_ + count_columns(mark);
  indent_ = column_ + 1;
  num_blanks_ = 0;
  word_.clear();
}

void Markdown::end_line() {
  if (!fence_.empty()) {
    if (closes(word_, fence_)) {
      fence_.clear();
    } else if (color_) {
      out_ += std::string(kCodeColor) + word_ + std::string(kReset) + "\n";
    } else {
      out_ += word_ + "\n";
    }
    word_.clear();
    block_ = Block::kStart;
    return;
  }
  if (block_ == Block::kTable) {
    table_.push_back(std::exchange(word_, ""));
    block_ = Block::kStart;
    num_blanks_ = 0;
    return;
  }
  if (block_ == Block::kStart) {
    put_table();
    fence_ = fence_of(word_);
    const bool rules = is_rule(word_);
    if (!fence_.empty() || rules) {
      if (rules) out_ += "────────\n";
      word_.clear();
      num_blanks_ = 0;
      return;
    }
    if (!word_.empty()) begin_line();
  }
  put_word(true);
  const bool was_styled = heading_ || bold_ || italic_ || code_;
  heading_ = bold_ = italic_ = code_ = false;
  if (was_styled) restyle();
  out_ += '\n';
  block_ = Block::kStart;
  column_ = num_blanks_ = indent_ = 0;
  before_ = ' ';
}

void Markdown::put_word(bool at_end) {
  if (word_.empty()) {
    if (at_end) num_blanks_ = 0;
    return;
  }
  // The marks taken out, to know how wide it is; the colours put in.
  std::string shown;
  std::string plain;
  if (num_blanks_ > 0 || column_ == 0) before_ = ' ';
  for (size_t i = 0; i < word_.size(); ++i) {
    const char one = word_[i];
    const char next = i + 1 < word_.size() ? word_[i + 1] : ' ';
    const auto put = [&](std::string_view text) {
      shown += text;
      plain += text;
      before_ = text.back();
    };
    const auto toggle = [&](bool& what) {
      what = !what;
      if (color_) shown += style();
    };
    if (one == '`') {
      toggle(code_);
    } else if (code_) {
      put(word_.substr(i, 1));
    } else if (one == '\\' && std::ispunct(static_cast<unsigned char>(next)) != 0) {
      put(word_.substr(++i, 1));
    } else if (one == '*' || one == '_') {
      const bool is_double = next == one;
      const size_t after_at = i + (is_double ? 2 : 1);
      const char after = after_at < word_.size() ? word_[after_at] : ' ';
      bool& what = is_double ? bold_ : italic_;
      const bool inside = one == '_' && is_word_char(before_) && is_word_char(after);
      const bool fits = what ? before_ != ' ' || i > 0 : after != ' ' && after != one;
      if (fits && !inside) {
        toggle(what);
        i += is_double ? 1 : 0;
      } else {
        put(word_.substr(i, is_double ? 2 : 1));
        i += is_double ? 1 : 0;
      }
    } else {
      put(word_.substr(i, 1));
    }
  }
  word_.clear();
  const size_t columns = count_columns(plain);
  const size_t width = width_ ? width_() : 0;
  if (width > 0 && column_ > indent_ && column_ + num_blanks_ + columns > width) {
    out_ += '\n' + std::string(indent_ < width ? indent_ : 0, ' ');
    column_ = indent_ < width ? indent_ : 0;
  } else {
    const size_t blanks = column_ == 0 && heading_ ? 0 : num_blanks_;
    out_ += std::string(blanks, ' ');
    column_ += blanks;
  }
  num_blanks_ = 0;
  out_ += shown;
  column_ += columns;
  if (width > 0 && column_ > width)
    column_ = (column_ - 1) % width + 1;  // a word longer than a line: the terminal breaks it
}

void Markdown::put_table() {
  if (table_.empty()) return;
  std::vector<std::vector<std::string>> rows;
  std::vector<size_t> widths;
  for (const std::string& line : table_) {
    rows.push_back(cells_of(line));
    widths.resize(std::max(widths.size(), rows.back().size()));
    if (parts_head(rows.back())) continue;
    for (size_t i = 0; i < rows.back().size(); ++i) {
      widths[i] = std::max(widths[i], count_columns(rows.back()[i]));
    }
  }
  table_.clear();
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += parts_head(row) ? "─┼─" : " │ ";
      if (parts_head(row)) {
        for (size_t j = 0; j < widths[i]; ++j) line += "─";
        continue;
      }
      line += row[i] + std::string(widths[i] - count_columns(row[i]), ' ');
    }
    out_ += line + "\n";
  }
}

}  // namespace tgi
