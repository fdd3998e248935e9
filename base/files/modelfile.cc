#include "base/files/modelfile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "base/utf8.h"

namespace tgi {
namespace {

constexpr std::string_view kTriple = "\"\"\"";
constexpr std::array<std::string_view, 2> kWithArgument = {"PARAMETER", "MESSAGE"};

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";  // that editors of Windows write first
    if (text_.starts_with(kMark)) text_.remove_prefix(kMark.size());
    const size_t valid = valid_utf8_prefix(text_);
    if (valid != text_.size()) {
      fail_modelfile(place(valid), "expected UTF-8, got bytes that are not");
    }
  }

  std::vector<ModelfileLine> lines() {
    std::vector<ModelfileLine> out;
    for (;;) {
      skip([](char c) { return is_blank(c) || c == '\n'; });
      if (at_ == text_.size()) return out;
      if (text_[at_] == '#') {
        at_ = end_of_line();
        continue;
      }
      out.push_back(instruction());
    }
  }

 private:
  template <typename Is>
  void skip(Is is) {
    while (at_ < text_.size() && is(text_[at_])) ++at_;
  }

  size_t end_of_line() const { return std::min(text_.find('\n', at_), text_.size()); }

  TextPlace place(size_t offset) const {
    const std::string_view before = text_.substr(0, offset);
    const size_t line_begin = before.rfind('\n') + 1;  // 0 where there is none
    return {.line = static_cast<size_t>(std::ranges::count(before, '\n')) + 1,
            .column = static_cast<size_t>(count_utf8_characters(before.substr(line_begin))) + 1};
  }

  std::string word() {
    const size_t begin = at_;
    skip([](char c) { return !is_blank(c) && c != '\n'; });
    return std::string(text_.substr(begin, at_ - begin));
  }

  ModelfileLine instruction() {
    ModelfileLine out;
    out.at = place(at_);
    out.instruction = word();
    std::ranges::transform(out.instruction, out.instruction.begin(),
                           [](unsigned char c) { return std::toupper(c); });
    skip(is_blank);
    if (std::ranges::find(kWithArgument, out.instruction) != kWithArgument.end()) {
      out.argument_at = place(at_);
      out.argument = word();
      skip(is_blank);
    }
    out.value_at = place(at_);
    out.value = value();
    return out;
  }

  std::string value() {
    if (text_.substr(at_).starts_with(kTriple)) return between_triple_quotes();
    if (at_ < text_.size() && text_[at_] == '"') return between_quotes();
    const std::string_view rest = text_.substr(at_, end_of_line() - at_);
    at_ = end_of_line();
    return std::string(trimmed(rest));
  }

  std::string between_triple_quotes() {
    const size_t opening = at_;
    const size_t begin = at_ + kTriple.size();
    size_t end = text_.find(kTriple, begin);
    if (end == std::string_view::npos) fail_unclosed(opening, kTriple);
    // The last of more quotes than three are the mark.
    while (end + kTriple.size() < text_.size() && text_[end + kTriple.size()] == '"') ++end;
    at_ = end + kTriple.size();
    skip(is_blank);
    if (at_ < text_.size() && text_[at_] != '\n') {
      fail_modelfile(place(at_),
                     fmt::format("expected the end of the line after {}, got {}", kTriple,
                                 text_.substr(at_, character_size(text_, at_))));
    }
    return std::string(text_.substr(begin, end - begin));
  }

  std::string between_quotes() {
    const size_t opening = at_++;
    const size_t begin = at_;
    for (;; ++at_) {
      const size_t end = end_of_line();
      const std::string_view line = trimmed(text_.substr(at_, end - at_));
      if (line.ends_with('"')) {
        const size_t quote = static_cast<size_t>(line.data() - text_.data()) + line.size() - 1;
        at_ = end;
        return std::string(text_.substr(begin, quote - begin));
      }
      if (end == text_.size()) fail_unclosed(opening, "\"");
      at_ = end;
    }
  }

  [[noreturn]] void fail_unclosed(size_t opening, std::string_view mark) const {
    fail_modelfile(
        place(opening),
        fmt::format("expected a closing {} at the end of a line, got the end of the file", mark));
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

void fail_modelfile(const TextPlace& at, std::string_view message) {
  throw Error(Code::kInvalidArgument,
              fmt::format("line {}, column {}: {}", at.line, at.column, message));
}

std::vector<ModelfileLine> parse_modelfile(std::string_view text) {
  return Reader(text).lines();
}

std::string modelfile_line(std::string_view head, std::string_view value) {
  const bool is_plain = !value.empty() && !value.starts_with('"') && trimmed(value) == value &&
                        value.find_first_of("\r\n") == std::string_view::npos;
  if (is_plain) return fmt::format("{} {}\n", head, value);
  if (value.find(kTriple) != std::string_view::npos) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: a text over several lines, or with quotes in front, can't hold {}",
                            head, kTriple));
  }
  return fmt::format("{} {}{}{}\n", head, kTriple, value, kTriple);
}

}  // namespace tgi
