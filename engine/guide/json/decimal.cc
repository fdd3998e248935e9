#include "engine/guide/json/decimal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace tgi::guide {

Decimal Decimal::of(const nlohmann::ordered_json& number) {
  if (number.is_number_unsigned()) return parsed(std::to_string(number.get<uint64_t>()));
  if (number.is_number_integer()) return parsed(std::to_string(number.get<int64_t>()));
  // The fewest digits that give the same double: what was written, but for more than 17 digits.
  std::array<char, 40> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), number.get<double>());
  return parsed(std::string_view(text.data(), static_cast<size_t>(written.ptr - text.data())));
}

Decimal Decimal::parsed(std::string_view text) {
  Decimal result;
  if (!text.empty() && text[0] == '-') {
    result.negative = true;
    text.remove_prefix(1);
  }
  int64_t exponent = 0;
  if (const size_t at = text.find_first_of("eE"); at != std::string_view::npos) {
    std::string_view digits = text.substr(at + 1);
    if (!digits.empty() && digits[0] == '+') digits.remove_prefix(1);
    std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    text = text.substr(0, at);
  }
  const size_t point = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, point));
  if (point < text.size()) digits += text.substr(point + 1);
  // A double has at most 309 digits before the point and 1074 after it.
  constexpr int64_t kMostDigits = 1500;
  const auto before_point = static_cast<int64_t>(point);
  const int64_t place =
      exponent == 0 ? before_point : std::clamp(before_point + exponent, -kMostDigits, kMostDigits);
  if (place <= 0) {
    digits.insert(0, static_cast<size_t>(1 - place), '0');
    result.integer = digits.substr(0, 1);
    result.fraction = digits.substr(1);
  } else {
    if (digits.size() < static_cast<size_t>(place)) digits.resize(static_cast<size_t>(place), '0');
    result.integer = digits.substr(0, static_cast<size_t>(place));
    result.fraction = digits.substr(static_cast<size_t>(place));
  }
  result.integer.erase(0, std::min(result.integer.find_first_not_of('0'), result.integer.size()));
  if (result.integer.empty()) result.integer = "0";
  result.fraction.erase(result.fraction.find_last_not_of('0') + 1);
  if (result.is_zero()) result.negative = false;
  return result;
}

std::string Decimal::text() const {
  return (negative ? "-" : "") + integer + (fraction.empty() ? "" : "." + fraction);
}

}  // namespace tgi::guide
