#include "engine/guide/lark_literals.h"

#include <algorithm>
#include <string_view>

#include "engine/guide/regex.h"

namespace tgi::guide {
namespace {

constexpr int32_t kMaxLarkCount = 1'000'000;

[[noreturn]] void refuse_at(const SourceText& source, size_t place, const std::string& what) {
  source.refuse(place, what, Code::kInvalidArgument);
}

char32_t take_hexadecimal(SourceText& source, size_t digits, size_t begin) {
  char32_t value = 0;
  for (size_t i = 0; i < digits; ++i, ++source.at) {
    const char c = source.peek();
    const char lower = static_cast<char>(c | 0x20);
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (lower < 'a' || lower > 'f'))
      refuse_at(source, begin, "an escape without its hexadecimal digits");
    value = value << 4 | static_cast<char32_t>(is_digit ? c - '0' : lower - 'a' + 10);
  }
  return value;
}

// Escapes as in Python's and JSON's strings: two halves of a surrogate pair are one character.
char32_t take_character(SourceText& source) {
  const size_t begin = source.at;
  if (!source.take("\\")) return next_character(source.text, source.at);
  const char kind = source.peek();
  ++source.at;
  const std::string_view from = "nrtfvab\\\"/'";
  const std::string_view to = "\n\r\t\f\v\a\b\\\"/'";
  if (const size_t found = from.find(kind); kind != '\0' && found != std::string_view::npos)
    return static_cast<unsigned char>(to[found]);
  const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
  if (digits == 0) refuse_at(source, begin, "an escape that isn't known");
  const char32_t value = take_hexadecimal(source, digits, begin);
  const bool is_high = kind == 'u' && value >= 0xD800 && value <= 0xDBFF;
  if (is_high && source.take("\\u")) {
    const char32_t low = take_hexadecimal(source, digits, begin);
    if (low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
    refuse_at(source, begin, "expected a character of Unicode");
  return value;
}

int32_t take_count(SourceText& source) {
  const size_t begin = source.at;
  int64_t value = 0;
  for (; source.peek() >= '0' && source.peek() <= '9'; ++source.at)
    value = std::min<int64_t>(value * 10 + (source.peek() - '0'), kMaxLarkCount + 1);
  if (source.at == begin) source.refuse("expected a number");
  if (value > kMaxLarkCount) {
    refuse_at(source, begin,
              "a repetition of more than " + std::to_string(kMaxLarkCount) + " times");
  }
  return static_cast<int32_t>(value);
}

}  // namespace

bool is_lark_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

std::string take_lark_word(SourceText& source, const std::string& what) {
  const size_t begin = source.at;
  while (is_lark_word(source.peek())) ++source.at;
  if (source.at == begin) source.refuse("expected " + what);
  return std::string(source.text.substr(begin, source.at - begin));
}

std::pair<int32_t, int32_t> take_lark_counts(SourceText& source, LarkCounts form) {
  const size_t begin = source.at;
  const bool braces = form == LarkCounts::kAfterBrace;
  const int32_t min = braces && source.peek() == ',' ? 0 : take_count(source);
  int32_t max = min;
  if (braces) {
    if (source.take(",")) max = source.peek() == '}' ? kUnbounded : take_count(source);
    if (!source.take("}")) source.refuse("expected \"}\"");
  } else if (source.take("..")) {
    max = take_count(source);
  }
  if (max != kUnbounded && max < min)
    refuse_at(source, begin, "a repetition whose largest number is less than its smallest");
  return {min, max};
}

std::string take_lark_string(SourceText& source) {
  const size_t begin = source.at;
  if (!source.take("\"")) source.refuse("expected a string");
  std::string text;
  while (!source.take("\"")) {
    if (source.at_end() || source.peek() == '\n')
      refuse_at(source, begin, "a string without its closing quote");
    append_utf8(take_character(source), text);
  }
  return text;
}

std::string take_lark_pattern(SourceText& source) {
  const size_t begin = source.at++;
  std::string pattern;
  while (!source.take("/")) {
    if (source.at_end() || source.peek() == '\n')
      refuse_at(source, begin, "a regular expression without its closing \"/\"");
    if (source.rest().starts_with("\\/")) {
      ++source.at;
    } else if (source.peek() == '\\') {
      pattern.push_back('\\');
      ++source.at;
      if (source.at_end()) continue;
    }
    pattern.push_back(source.peek());
    ++source.at;
  }
  std::string flags;
  while (source.peek() != '\0' &&
         std::string_view("imslux").find(source.peek()) != std::string_view::npos) {
    if (source.peek() != 'l' && source.peek() != 'u') flags.push_back(source.peek());
    ++source.at;
  }
  return flags.empty() ? pattern : "(?" + flags + ")" + pattern;
}

}  // namespace tgi::guide
