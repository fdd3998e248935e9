// JSON written piece by piece into a string, for the few lines that are written once per token: no
// tree, no allocation of its own. What else is JSON goes through the library.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

namespace tgi {

class JsonText {
 public:
  explicit JsonText(std::string& out) : out_(out) {}

  // Adds text as it is: keys, brackets, what was written before.
  JsonText& raw(std::string_view text) {
    out_ += text;
    return *this;
  }

  // REQUIRES: valid UTF-8.
  JsonText& string(std::string_view text) {
    out_ += '"';
    size_t done = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      if (c >= 0x20 && c != '"' && c != '\\') continue;
      out_.append(text, done, i - done);
      escape(c);
      done = i + 1;
    }
    out_.append(text, done);
    out_ += '"';
    return *this;
  }

  template <std::integral Integer>
  JsonText& number(Integer value) {
    return write_number(value);
  }

  // In the fewest digits that give the same number back; null when there are none.
  JsonText& number(double value) {
    return std::isfinite(value) ? write_number(value) : raw("null");
  }
  JsonText& number(const std::optional<double>& value) {
    return value ? number(*value) : raw("null");
  }

  JsonText& boolean(bool value) { return raw(value ? "true" : "false"); }

 private:
  template <typename T>
  JsonText& write_number(T value) {
    std::array<char, 32> text{};
    const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
    out_.append(text.data(), written.ptr);
    return *this;
  }

  void escape(unsigned char c) {
    constexpr std::string_view kHex = "0123456789abcdef";
    switch (c) {
      case '"':
        out_ += "\\\"";
        return;
      case '\\':
        out_ += "\\\\";
        return;
      case '\n':
        out_ += "\\n";
        return;
      case '\r':
        out_ += "\\r";
        return;
      case '\t':
        out_ += "\\t";
        return;
      default:
        out_ += "\\u00";
        out_ += kHex[c >> 4];
        out_ += kHex[c & 15];
    }
  }

  std::string& out_;
};

}  // namespace tgi
