#include "engine/dialect/json_check.h"

#include <cctype>
#include <string>

#include "base/utf8.h"

namespace tgi::dialect {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class JsonCheck {
 public:
  explicit JsonCheck(std::string_view text) : text_(text) {}

  // Without recursion: `open_` holds the brackets that are not closed yet.
  bool is_object() {
    skip_space();
    if (peek() != '{') return false;
    for (bool wants_value = true;;) {
      skip_space();
      if (wants_value) {
        if (!value(wants_value)) return false;
      } else if (!after_value(wants_value)) {
        return false;
      }
      if (open_.empty()) break;
    }
    skip_space();
    return at_ == text_.size() && is_valid_utf8(text_);
  }
  bool is_number() { return number() && at_ == text_.size(); }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t') ++at_;
  }

  // A value, or the bracket that begins one; then whether a value is due next.
  bool value(bool& wants_value) {
    wants_value = false;
    const char c = peek();
    if (c == '{' || c == '[') {
      ++at_;
      open_ += c;
      skip_space();
      if (peek() == (c == '{' ? '}' : ']')) return true;  // closed by after_value()
      wants_value = true;
      return c == '[' || key();
    }
    if (c == '"') return string();
    if (c == '-' || is_digit(c)) return number();
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return true;
    }
    return false;
  }

  bool after_value(bool& wants_value) {
    const bool in_object = open_.back() == '{';
    if (take(in_object ? '}' : ']')) {
      open_.pop_back();
      return true;
    }
    wants_value = true;
    if (!take(',')) return false;
    skip_space();
    return !in_object || key();
  }

  bool key() {
    if (!string()) return false;
    skip_space();
    return take(':');
  }

  bool string() {
    if (!take('"')) return false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') return take('"');
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\' && !escape()) return false;
    }
    return false;
  }

  bool escape() {
    ++at_;
    if (peek() != 'u')
      return peek() != '\0' &&
             std::string_view("\"\\/bfnrt").find(peek()) != std::string_view::npos;
    for (int i = 0; i < 4; ++i) {
      ++at_;
      if (std::isxdigit(static_cast<unsigned char>(peek())) == 0) return false;
    }
    return true;
  }

  bool digits() {
    if (!is_digit(peek())) return false;
    while (is_digit(peek())) ++at_;
    return true;
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (!take('e') && !take('E')) return true;
    if (!take('+')) take('-');
    return digits();
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string open_;
};

}  // namespace

bool is_json_object(std::string_view text) {
  return JsonCheck(text).is_object();
}

bool is_json_number(std::string_view text) {
  return JsonCheck(text).is_number();
}

}  // namespace tgi::dialect
