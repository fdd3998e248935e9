#include "engine/dialect/json_scanner.h"

#include <cstdint>
#include <optional>

#include "base/json_text.h"
#include "base/nlohmann_json.h"
#include "base/utf8.h"

namespace tgi::dialect {

bool is_json_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

size_t JsonScanner::feed(std::string_view text) {
  size_t at = 0;
  for (; at < text.size() && !is_done_; ++at) {
    const char c = text[at];
    if (in_string_) {
      if (is_escaped_) {
        is_escaped_ = false;
      } else if (c == '\\') {
        is_escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
        is_done_ = open_.empty();
      }
      continue;
    }
    if (is_scalar_) {
      if (is_json_space(c) || c == ',' || c == '}' || c == ']') {
        is_done_ = true;
        return at;
      }
      continue;
    }
    if (!has_begun_ && is_json_space(c)) continue;
    if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      open_ += c;
    } else if (c == '}' || c == ']') {
      if (open_.empty()) {  // nothing was there
        is_done_ = true;
        return at;
      }
      open_.pop_back();
      is_done_ = open_.empty();
    } else if (!has_begun_) {
      is_scalar_ = true;
    }
    has_begun_ = true;
  }
  return at;
}

namespace {

// Recursive descent over one literal; values of calls are short and not deep.
class PythonLiteral {
 public:
  explicit PythonLiteral(std::string_view text) : text_(text) {}

  std::optional<std::string> read() {
    std::string out;
    if (!value(out, 0)) return std::nullopt;
    skip_space();
    // The library takes a zero byte for the end of the text.
    const bool is_json = out.find('\0') == std::string::npos && nlohmann::json::accept(out);
    if (at_ != text_.size() || !is_json) return std::nullopt;
    return out;
  }

 private:
  static constexpr int kMaxDepth = 64;

  void skip_space() {
    while (at_ < text_.size() && is_json_space(text_[at_])) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool value(std::string& out, int depth) {
    skip_space();
    if (at_ >= text_.size() || depth > kMaxDepth) return false;
    const char c = text_[at_];
    if (c == '"' || c == '\'') return string(out);
    if (c == '{') return members(out, depth);
    if (c == '[') return items(out, ']', depth);
    if (c == '(') return items(out, ')', depth);
    return word(out);
  }

  bool items(std::string& out, char close, int depth) {
    ++at_;
    out += '[';
    for (bool first = true; !take(close); first = false) {
      if (!first && !take(',')) return false;
      if (!first && take(close)) break;  // a comma behind the last
      if (!first) out += ", ";
      if (!value(out, depth + 1)) return false;
    }
    out += ']';
    return true;
  }

  bool members(std::string& out, int depth) {
    ++at_;
    out += '{';
    for (bool first = true; !take('}'); first = false) {
      if (!first && !take(',')) return false;
      if (!first && take('}')) break;
      if (!first) out += ", ";
      skip_space();
      if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) return false;
      if (!string(out) || !take(':')) return false;
      out += ": ";
      if (!value(out, depth + 1)) return false;
    }
    out += '}';
    return true;
  }

  bool word(std::string& out) {
    const size_t begin = at_;
    while (at_ < text_.size() &&
           std::string_view(",:]}) \n\r\t").find(text_[at_]) == std::string_view::npos) {
      ++at_;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "True" || word == "true") {
      out += "true";
    } else if (word == "False" || word == "false") {
      out += "false";
    } else if (word == "None" || word == "null") {
      out += "null";
    } else {
      out += word;  // a number, or read() finds that it is none
    }
    return !word.empty();
  }

  bool string(std::string& out) {
    const char quote = text_[at_++];
    std::string value;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] != '\\') {
        value += text_[at_];
      } else if (++at_ < text_.size()) {
        escape(value);
      }
    }
    if (at_ >= text_.size() || !is_valid_utf8(value)) return false;
    ++at_;
    JsonText(out).string(value);
    return true;
  }

  void escape(std::string& value) {
    constexpr std::string_view kNames = "ntrbfva0";
    constexpr std::string_view kValues("\n\t\r\b\f\v\a\0", 8);
    const char c = text_[at_];
    if (c == 'x' || c == 'u' || c == 'U') return code_point(value, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    if (c == '\n') return;  // a line that goes on
    const size_t known = kNames.find(c);
    if (known != std::string_view::npos) {
      value += kValues[known];
      return;
    }
    if (c != '\\' && c != '\'' && c != '"' && c != '/') value += '\\';
    value += c;
  }

  uint32_t digits(size_t begin, size_t count) const {
    uint32_t out = 0;
    for (size_t i = begin; i < begin + count && i < text_.size(); ++i) {
      const char c = text_[i];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : 0;
      out = out * 16 + static_cast<uint32_t>(digit);
    }
    return out;
  }

  void code_point(std::string& value, size_t num_digits) {
    uint32_t code = digits(at_ + 1, num_digits);
    at_ += num_digits;
    const bool is_high = code >= 0xD800 && code < 0xDC00;
    if (is_high && text_.substr(std::min(at_ + 1, text_.size())).starts_with("\\u")) {
      code = 0x10000 + ((code - 0xD800) << 10) + (digits(at_ + 3, 4) - 0xDC00);
      at_ += 6;
    }
    if ((code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) code = 0xFFFD;
    append_utf8(static_cast<char32_t>(code), value);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string json_of_python(std::string_view literal) {
  return PythonLiteral(literal).read().value_or("");
}

size_t PythonScanner::feed(std::string_view text) {
  for (size_t at = 0; at < text.size() && !is_done_; ++at) {
    const char c = text[at];
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (quote_ != '\0') {
      is_escaped_ = c == '\\';
      if (c == quote_) quote_ = '\0';
    } else if (c == '"' || c == '\'') {
      quote_ = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth_;
    } else if (c == ')' || c == ']' || c == '}') {
      is_done_ = --depth_ < 0;
    } else {
      is_done_ = c == ',' && depth_ == 0;
    }
    if (is_done_) return at;
  }
  return is_done_ ? 0 : text.size();
}

}  // namespace tgi::dialect
