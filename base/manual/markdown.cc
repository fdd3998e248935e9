// Markdown as docs/ writes it, to troff. Line by line: a heading, a row of a table, an item of a
// list, a line of code, or text that belongs to what came before.
#include <fmt/format.h>

#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/manual/man_page.h"
#include "base/manual/roff.h"

namespace tgi {
namespace {

// `code`, **bold**, *italics*, [text](where), and \| within tables. A mark without its end is
// itself.
std::string inline_markup(std::string_view text) {
  std::string out;
  std::string plain;
  const auto flush = [&] {
    if (plain.empty()) return;
    std::string escaped = roff_escape(plain);
    // Only a line's first character can be taken for a macro.
    if (!out.empty() && escaped.starts_with("\\&")) escaped.erase(0, 2);
    out += escaped;
    plain.clear();
  };
  const auto spanned = [&](size_t begin, std::string_view mark) -> std::optional<std::string_view> {
    const size_t end = text.find(mark, begin + mark.size());
    if (!text.substr(begin).starts_with(mark) || end == std::string_view::npos) return std::nullopt;
    return text.substr(begin + mark.size(), end - begin - mark.size());
  };
  size_t i = 0;
  while (i < text.size()) {
    if (const auto code = spanned(i, "`")) {
      flush();
      out += roff_bold(*code);
      i += code->size() + 2;
    } else if (const auto bold = spanned(i, "**")) {
      flush();
      out += fmt::format("\\fB{}\\fR", inline_markup(*bold));
      i += bold->size() + 4;
    } else if (const auto italic = spanned(i, "*"); italic && !italic->starts_with(' ')) {
      flush();
      out += roff_italic(*italic);
      i += italic->size() + 2;
    } else if (const size_t middle = text.find("](", i);
               text[i] == '[' && middle != std::string_view::npos) {
      const size_t end = text.find(')', middle);
      flush();
      out += inline_markup(text.substr(i + 1, middle - i - 1));
      i = end == std::string_view::npos ? text.size() : end + 1;
    } else {
      if (text.substr(i).starts_with("\\|")) ++i;
      plain += text[i++];
    }
  }
  flush();
  return out;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> cells_of(std::string_view row) {
  row = trim(row);
  if (row.starts_with('|')) row.remove_prefix(1);
  if (row.ends_with('|')) row.remove_suffix(1);
  std::vector<std::string_view> cells;
  size_t begin = 0;
  for (size_t i = 0; i <= row.size(); ++i) {
    const bool is_bar = i < row.size() && row[i] == '|' && (i == 0 || row[i - 1] != '\\');
    if (i != row.size() && !is_bar) continue;
    cells.push_back(trim(row.substr(begin, i - begin)));
    begin = i + 1;
  }
  return cells;
}

// How far the list item of a line reaches in ("- x": 2, "12. x": 4), or nothing.
std::optional<size_t> item_mark(std::string_view line) {
  if (line.starts_with("- ") || line.starts_with("* ")) return 2;
  size_t digits = 0;
  while (digits < line.size() && line[digits] >= '0' && line[digits] <= '9') ++digits;
  if (digits > 0 && line.substr(digits).starts_with(". ")) return digits + 2;
  return std::nullopt;
}

class Converter {
 public:
  std::string convert(std::string_view markdown) {
    std::istringstream lines{std::string(markdown)};
    for (std::string line; std::getline(lines, line);) take(line);
    end_table();
    end_code();
    leave_lists(0);
    return std::move(out_);
  }

 private:
  void take(const std::string& line) {
    if (line.starts_with("```")) {
      in_fence_ = !in_fence_;
      in_fence_ ? begin_code() : end_code();
      return;
    }
    if (in_fence_) return code_line(line);
    const std::string_view text = trim(line);
    if (text.empty()) return blank();
    const size_t indent = line.find_first_not_of(' ');
    if (indent >= 4 && (after_blank_ || in_code_) && depth_ == 0) {
      begin_code();
      return code_line(line.substr(4));
    }
    end_code();
    if (text.starts_with('|')) return table_row(text);
    end_table();
    if (text.starts_with('#')) return heading(text);
    if (const auto mark = item_mark(text)) return item(indent, text, *mark);
    paragraph(indent, text);
  }

  void blank() {
    if (in_code_ && !in_fence_) pending_blank_ = true;
    end_table();
    after_blank_ = true;
  }

  void heading(std::string_view text) {
    leave_lists(0);
    const size_t level = text.find_first_not_of('#');
    const std::string_view words = trim(text.substr(level));
    after_blank_ = false;
    if (level == 1) return;
    out_ += level == 2 ? roff_section(words) : fmt::format(".SS {}\n", inline_markup(words));
    fresh_ = true;
  }

  void paragraph(size_t indent, std::string_view text) {
    if (after_blank_ && indent == 0) leave_lists(0);
    if (after_blank_ && !fresh_) out_ += depth_ > 0 ? ".IP\n" : ".PP\n";
    if (out_.empty()) out_ += roff_section("description");
    out_ += inline_markup(text) + "\n";
    after_blank_ = false;
    fresh_ = false;
  }

  void item(size_t indent, std::string_view text, size_t mark) {
    if (out_.empty()) out_ += roff_section("description");
    const size_t depth = indent / 2 + 1;
    while (depth_ > depth) leave_lists(depth_ - 1);
    if (depth_ < depth) {
      if (depth_ > 0) out_ += ".RS\n";
      ++depth_;
    }
    const std::string_view head = trim(text.substr(0, mark));
    out_ += fmt::format(".IP {} 4\n{}\n", head == "-" || head == "*" ? "\\(bu" : std::string(head),
                        inline_markup(text.substr(mark)));
    after_blank_ = false;
    fresh_ = false;
  }

  void leave_lists(size_t depth) {
    while (depth_ > depth) {
      if (depth_ > 1) out_ += ".RE\n";
      --depth_;
    }
  }

  void table_row(std::string_view text) {
    leave_lists(0);
    const std::vector<std::string_view> cells = cells_of(text);
    if (headings_.empty()) {
      for (const std::string_view cell : cells) headings_.emplace_back(cell);
      return;
    }
    if (text.find_first_not_of("|-: ") == std::string_view::npos) return;
    std::string rest;
    for (size_t i = 1; i < cells.size(); ++i) {
      if (cells[i].empty()) continue;
      if (!rest.empty()) rest += "\n.br\n";
      const bool is_named = cells.size() > 2 && i < headings_.size() && !headings_[i].empty();
      rest += is_named ? fmt::format("{}: {}", inline_markup(headings_[i]), inline_markup(cells[i]))
                       : inline_markup(cells[i]);
    }
    out_ += fmt::format(".TP\n{}\n{}\n", inline_markup(cells.front()), rest.empty() ? "\\&" : rest);
    fresh_ = false;
    after_blank_ = false;
  }

  void end_table() { headings_.clear(); }

  void begin_code() {
    if (in_code_) return;
    out_ += ".PP\n.RS 4\n.nf\n";
    in_code_ = true;
  }

  void code_line(const std::string& line) {
    if (pending_blank_) out_ += "\\&\n";
    pending_blank_ = false;
    out_ += line.empty() ? std::string("\\&\n") : roff_escape(line) + "\n";
  }

  void end_code() {
    if (!in_code_) return;
    out_ += ".fi\n.RE\n";
    in_code_ = false;
    pending_blank_ = false;
    after_blank_ = true;
    fresh_ = false;
  }

  std::string out_;
  std::vector<std::string> headings_;  // of the table we are in; empty: in none
  size_t depth_ = 0;                   // of lists
  bool in_fence_ = false;
  bool in_code_ = false;
  bool pending_blank_ = false;  // a blank line of code, if more code follows
  bool after_blank_ = false;
  bool fresh_ = true;  // right after a heading
};

}  // namespace

std::string markdown_man_page(std::string_view name,
                              int section,
                              std::string_view manual,
                              std::string_view summary,
                              std::string_view markdown,
                              const std::vector<std::string>& see_also) {
  return roff_title(name, section, manual, summary) + Converter().convert(markdown) +
         roff_see_also(see_also);
}

}  // namespace tgi
