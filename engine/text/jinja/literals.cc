#include "engine/text/jinja/literals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/utf8.h"
#include "engine/text/jinja/lexer.h"
#include "engine/text/jinja/text.h"

namespace tgi::jinja {
namespace {

bool is_digit_of(char character, int base) {
  if (base <= 10) return character >= '0' && character < '0' + base;
  return std::string_view("0123456789abcdefABCDEF").find(character) != std::string_view::npos;
}

// The length of `digit (_? digit)*` at the start of `text`.
size_t digits_length(std::string_view text, int base) {
  size_t length = 0;
  while (length < text.size()) {
    const size_t digit = length > 0 && text[length] == '_' ? length + 1 : length;
    if (digit >= text.size() || !is_digit_of(text[digit], base)) break;
    length = digit + 1;
  }
  return length;
}

int digit_value(char digit) {
  return digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10;
}

// The length of the number if it is a float, else 0.
size_t float_length(std::string_view text) {
  size_t length = digits_length(text, 10);
  bool is_float = false;
  if (length < text.size() && text[length] == '.') {
    const size_t fraction = digits_length(text.substr(length + 1), 10);
    is_float = fraction > 0;
    length += is_float ? fraction + 1 : 0;
  }
  if (length < text.size() && (text[length] == 'e' || text[length] == 'E')) {
    const std::string_view behind = text.substr(length + 1);
    const size_t sign = !behind.empty() && (behind[0] == '+' || behind[0] == '-') ? 1 : 0;
    const size_t exponent = digits_length(behind.substr(sign), 10);
    is_float = is_float || exponent > 0;
    length += exponent > 0 ? 1 + sign + exponent : 0;
  }
  return is_float ? length : 0;
}

struct IntegerNotation {
  int base;
  size_t start;   // of the digits
  size_t length;  // with what comes before them
};

IntegerNotation integer_notation(std::string_view text) {
  const char mark = text.size() > 2 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  const int base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
  if (base != 10) {
    const size_t start = text[2] == '_' ? 3 : 2;  // 0x_ff
    const size_t digits = digits_length(text.substr(start), base);
    if (digits > 0) return {base, start, start + digits};
  }
  const size_t length = digits_length(text, 10);
  if (text[0] != '0') return {10, 0, length};
  return {10, 0, digits_length(text.substr(0, length), 1)};  // 007 is 00, then 7
}

size_t append_character(
    std::string_view text, size_t at, size_t max_digits, int base, int line, std::string& result) {
  char32_t character = 0;
  size_t end = at;
  while (end < text.size() && end < at + max_digits && is_digit_of(text[end], base)) {
    character =
        character * static_cast<char32_t>(base) + static_cast<char32_t>(digit_value(text[end++]));
  }
  if (base == 16 && end != at + max_digits) {
    fail_at(line, fmt::format("a truncated escape: expected {} hex digits", max_digits));
  }
  if (character > 0x10FFFF || (character >= 0xD800 && character < 0xE000)) {
    fail_at(line, fmt::format("U+{:04X} is not a character", static_cast<uint32_t>(character)));
  }
  append_utf8(character, result);
  return end;
}

// `at` is behind the backslash. Returns where to go on.
size_t unescape_one(std::string_view text, size_t at, int line, std::string& result) {
  constexpr std::string_view kLetters = "abfnrtv\\'\"";
  constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
  const char letter = text[at];
  if (letter == '\n') return at + 1;
  if (const size_t known = kLetters.find(letter); known != std::string_view::npos) {
    result += kMeanings[known];
    return at + 1;
  }
  if (is_digit_of(letter, 8)) return append_character(text, at, 3, 8, line, result);
  if (letter == 'x') return append_character(text, at + 1, 2, 16, line, result);
  if (letter == 'u') return append_character(text, at + 1, 4, 16, line, result);
  if (letter == 'U') return append_character(text, at + 1, 8, 16, line, result);
  if (letter == 'N') {
    fail_unsupported_at(line, "characters by name, \\N{...}, are not supported");
  }
  result += '\\';
  return at;
}

}  // namespace

NumberLiteral read_number_literal(std::string_view text, bool is_behind_dot, int line) {
  if (const size_t length = is_behind_dot ? 0 : float_length(text); length > 0) {
    std::string digits(text.substr(0, length));
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    return {Value::real(std::strtod(digits.c_str(), nullptr)), length};
  }
  const IntegerNotation notation = integer_notation(text);
  Int number = 0;
  for (const char digit : text.substr(notation.start, notation.length - notation.start)) {
    if (digit == '_') continue;
    if (__builtin_mul_overflow(number, Int{notation.base}, &number) ||
        __builtin_add_overflow(number, Int{digit_value(digit)}, &number)) {
      fail_at(line, "this integer is too large");
    }
  }
  return {Value::integer(number), notation.length};
}

std::string unescape(std::string_view text, int line) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      result += text[at++];
    } else {
      at = unescape_one(text, at + 1, line, result);
    }
  }
  return result;
}

}  // namespace tgi::jinja
