#include "engine/guide/regex_escape.h"

#include <optional>
#include <string>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/guide/regex_ast.h"
#include "engine/guide/regex_sets.h"

namespace tgi::guide {
namespace {

bool is_digit_character(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::optional<char32_t> take_hex(RegexText& text, size_t min_digits, size_t max_digits) {
  char32_t value = 0;
  size_t digits = 0;
  for (; digits < max_digits && !text.at_end(); ++digits, ++text.at) {
    const char c = text.peek();
    char32_t digit = 0;
    if (is_digit_character(c)) {
      digit = static_cast<char32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<char32_t>(c - 'a' + 10);
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<char32_t>(c - 'A' + 10);
    } else {
      break;
    }
    value = value << 4 | digit;
  }
  if (digits < min_digits) return std::nullopt;
  return value;
}

// REQUIRES: \x, \u or \U was read, which began at `begin`.
char32_t take_code_point(RegexText& text, char kind, size_t begin) {
  const auto refuse = [&](std::string_view what) {
    text.at = begin;
    text.refuse(what);
  };
  std::optional<char32_t> value;
  if (kind != 'U' && text.take('{')) {
    value = take_hex(text, 1, 8);
    if (!text.take('}')) value = std::nullopt;
  } else {
    const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
    value = take_hex(text, digits, digits);
  }
  if (!value) refuse("an escape without its hexadecimal digits");
  const bool is_high = *value >= 0xD800 && *value < 0xDC00;
  if (is_high && text.pattern.substr(text.at).starts_with("\\u")) {
    RegexText ahead = text;
    ahead.at += 2;
    const std::optional<char32_t> low = take_hex(ahead, 4, 4);
    if (low && *low >= 0xDC00 && *low < 0xE000) {
      text = ahead;
      return 0x10000 + ((*value - 0xD800) << 10) + (*low - 0xDC00);
    }
  }
  if (*value >= 0xD800 && *value < 0xE000)
    refuse("half of a surrogate pair, which is no character of UTF-8");
  if (*value > 0x10FFFF) refuse("a number above U+10FFFF, the last character");
  return *value;
}

CodePoints take_property(RegexText& text, bool negated, size_t begin) {
  std::string_view name;
  if (text.take('{')) {
    const size_t end = text.pattern.find('}', text.at);
    if (end == std::string_view::npos) {
      text.at = begin;
      text.refuse("\\p{ without }");
    }
    name = text.pattern.substr(text.at, end - text.at);
    text.at = end + 1;
  } else if (!text.at_end()) {
    name = text.pattern.substr(text.at++, 1);
  }
  if (name.starts_with('^')) {
    negated = !negated;
    name.remove_prefix(1);
  }
  const std::optional<CodePoints> set = property_characters(name);
  if (!set) {
    text.at = begin;
    text.refuse("a property of characters that isn't known");
  }
  return negated ? negate_code_points(*set) : *set;
}

std::optional<CodePoints> named_class(char kind) {
  switch (kind) {
    case 'd':
      return digit_characters();
    case 'D':
      return negate_code_points(digit_characters());
    case 'w':
      return word_characters();
    case 'W':
      return negate_code_points(word_characters());
    case 's':
      return white_space_characters();
    case 'S':
      return negate_code_points(white_space_characters());
    default:
      return std::nullopt;
  }
}

std::optional<char32_t> control_escape(char kind) {
  switch (kind) {
    case 't':
      return '\t';
    case 'n':
      return '\n';
    case 'v':
      return '\v';
    case 'f':
      return '\f';
    case 'r':
      return '\r';
    case 'a':
      return '\a';
    case 'e':
      return 0x1B;
    default:
      return std::nullopt;
  }
}

}  // namespace

char32_t RegexText::take_character() {
  return next_character(pattern, at);
}

void RegexText::refuse(std::string_view what) const {
  refuse_regex(pattern, at, what, false);
}

void RegexText::refuse_unsupported(std::string_view what) const {
  refuse_regex(pattern, at, what, true);
}

CodePoints parse_regex_escape(RegexText& text, bool in_class) {
  const size_t begin = text.at++;
  const auto refuse = [&](std::string_view what) {
    text.at = begin;
    text.refuse(what);
  };
  if (text.at_end()) refuse("a backslash at the end");
  const char kind = text.peek();
  const auto one = [](char32_t c) { return CodePoints{{c, c}}; };
  if (!is_letter_character(kind) && !is_digit_character(kind)) {
    const char32_t character = text.take_character();
    return one(character);
  }
  ++text.at;
  if (const auto set = named_class(kind)) return *set;
  if (const auto control = control_escape(kind)) return one(*control);
  if (kind == 'p' || kind == 'P') return take_property(text, kind == 'P', begin);
  if (kind == 'x' || kind == 'u' || kind == 'U') return one(take_code_point(text, kind, begin));
  if (kind == 'b' && in_class) return one('\b');
  if (kind == 'c') {
    if (text.at_end() || !is_letter_character(text.peek())) refuse("\\c without a letter");
    return one(static_cast<char32_t>(text.pattern[text.at++] & 0x1F));
  }
  if (kind == '0') {
    if (!text.at_end() && is_digit_character(text.peek()))
      refuse("an octal escape; write \\x and two hexadecimal digits");
    return one(0);
  }
  if (is_digit_character(kind) || kind == 'k') {
    text.at = begin;
    if (!in_class) text.refuse_unsupported("a back reference, which isn't regular");
    text.refuse("an octal escape; write \\x and two hexadecimal digits");
  }
  refuse("an escape that isn't known");
  return {};
}

}  // namespace tgi::guide
