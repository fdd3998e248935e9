#include "engine/text/jinja/format_field.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "engine/text/jinja/print.h"
#include "engine/text/jinja/text.h"

namespace tgi::jinja {
namespace {

constexpr size_t kMaxPrecision = 1000;

std::string pad(std::string_view sign,
                std::string body,
                const FieldStyle& style,
                char default_align,
                Budget& budget) {
  const size_t length = count_characters(sign) + count_characters(body);
  if (style.width <= length) return std::string(sign) + body;
  const size_t missing = style.width - length;
  budget.charge_text(missing * style.fill.size() + body.size());
  const char align = style.align == '\0' ? default_align : style.align;
  const size_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string result(align == '=' ? sign : "");
  for (size_t i = 0; i < before; ++i) result += style.fill;
  if (align != '=') result += sign;
  result += body;
  for (size_t i = before; i < missing; ++i) result += style.fill;
  return result;
}

std::string group_digits(const std::string& digits, char separator) {
  const size_t whole = std::min(digits.find_first_not_of("0123456789abcdef"), digits.size());
  std::string result;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) result += separator;
    result += digits[i];
  }
  return result + digits.substr(whole);
}

std::string_view sign_of(bool is_negative, const FieldStyle& style) {
  if (is_negative) return "-";
  return style.sign == '+' ? "+" : style.sign == ' ' ? " " : "";
}

std::string to_upper_ascii(std::string text) {
  for (char& character : text) {
    if (character >= 'a' && character <= 'z') character = static_cast<char>(character - 'a' + 'A');
  }
  return text;
}

std::string print_with(char type, size_t precision, bool alternate, double value) {
  const std::string pattern = std::string(alternate ? "%#.*" : "%.*") + type;
  std::array<char, 1500> buffer{};
  const int length = std::snprintf(buffer.data(), buffer.size(), pattern.c_str(),
                                   static_cast<int>(precision), value);
  return {buffer.data(), static_cast<size_t>(length)};
}

}  // namespace

size_t read_number(std::string_view text, size_t& at) {
  size_t number = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    number = std::min<size_t>(number * 10 + static_cast<size_t>(text[at++] - '0'), size_t{1} << 40);
  }
  return number;
}

std::string format_integer(Int value, const FieldStyle& style, Budget& budget) {
  const char kind = static_cast<char>(style.type | 0x20);
  const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
  std::string digits = print_integer(value, base);
  const bool is_negative = digits[0] == '-';
  if (is_negative) digits.erase(0, 1);
  if (style.precision && digits.size() < *style.precision) {
    digits.insert(0, *style.precision - digits.size(), '0');
  }
  if (style.grouping != '\0') digits = group_digits(digits, style.grouping);
  std::string sign(sign_of(is_negative, style));
  if (style.alternate && base != 10) sign += std::string("0") + kind;
  if (style.type == 'X') {
    sign = to_upper_ascii(sign);
    digits = to_upper_ascii(digits);
  }
  return pad(sign, digits, style, '>', budget);
}

std::string format_float(double value, const FieldStyle& style, Budget& budget) {
  const bool is_negative = std::signbit(value) && !std::isnan(value);
  const double size = std::fabs(value);
  const char type = style.type;
  std::string digits;
  if (!std::isfinite(size)) {
    digits = std::isnan(size) ? "nan" : "inf";
  } else if (type == '%') {
    digits = print_with('f', style.precision.value_or(6), style.alternate, size * 100) + "%";
  } else if (type == '\0' && !style.precision) {
    digits = print_float(size);
  } else if (type == '\0') {
    digits = print_with('g', std::max<size_t>(*style.precision, 1), style.alternate, size);
    const bool looks_whole = digits.find_first_of(".e") == std::string::npos;
    if (looks_whole) digits += ".0";
  } else {
    digits = print_with(static_cast<char>(type | 0x20), style.precision.value_or(6),
                        style.alternate, size);
  }
  if (type >= 'A' && type <= 'Z') digits = to_upper_ascii(digits);
  if (style.grouping != '\0') digits = group_digits(digits, style.grouping);
  return pad(sign_of(is_negative, style), digits, style, '>', budget);
}

std::string format_text(std::string text,
                        const FieldStyle& style,
                        char default_align,
                        Budget& budget) {
  if (style.precision) text.resize(byte_offset(text, *style.precision));
  return pad("", std::move(text), style, default_align, budget);
}

void check_precision(const FieldStyle& style) {
  if (style.precision && *style.precision > kMaxPrecision) {
    fail(
        fmt::format("a precision of {} is too large: at most {}", *style.precision, kMaxPrecision));
  }
}

}  // namespace tgi::jinja
