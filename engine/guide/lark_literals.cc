#include "engine/guide/lark_literals.h"

#include <string_view>

namespace tgi::guide {
namespace {

[[noreturn]] void refuse_at(const SourceText& source, size_t place, const std::string& what) {
  source.refuse(place, what, Code::kInvalidArgument);
}

// Escapes as in Python's and JSON's strings.
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
  char32_t value = 0;
  for (size_t i = 0; i < digits; ++i, ++source.at) {
    const char c = source.peek();
    const char lower = static_cast<char>(c | 0x20);
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (lower < 'a' || lower > 'f'))
      refuse_at(source, begin, "an escape without its hexadecimal digits");
    value = value << 4 | static_cast<char32_t>(is_digit ? c - '0' : lower - 'a' + 10);
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
    refuse_at(source, begin, "expected a character of Unicode");
  return value;
}

}  // namespace

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
