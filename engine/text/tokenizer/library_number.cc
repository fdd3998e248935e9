#include "engine/text/tokenizer/library_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

namespace tgi {
namespace {

constexpr int64_t kHighestPower = 308;

using Powers = std::array<double, kHighestPower + 1>;

// 10^0 to 10^308, each the nearest double.
Powers make_powers() {
  Powers powers{};
  for (size_t i = 0; i < powers.size(); ++i) {
    const std::string written = fmt::format("1e{}", i);
    std::from_chars(written.data(), written.data() + written.size(), powers[i]);
  }
  return powers;
}

// What stands behind the e; far beyond what matters when it is more than that.
int64_t read_exponent(std::string_view text) {
  constexpr int64_t kFarBeyond = 1 << 30;
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error != std::errc()) exponent = text.starts_with('-') ? -kFarBeyond : kFarBeyond;
  return std::clamp(exponent, -kFarBeyond, kFarBeyond);
}

}  // namespace

double library_number(std::string_view text) {
  static const Powers powers = make_powers();
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const bool negative = text.starts_with('-');
  uint64_t digits = 0;
  int64_t exponent = 0;
  bool full = false;  // of digits: the others only count in front of the point
  bool behind_point = false;
  size_t at = negative ? 1 : 0;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] < '0' || text[at] > '9') {
      behind_point = true;
      continue;
    }
    const auto digit = static_cast<uint64_t>(text[at] - '0');
    full = full || digits > (kMost - digit) / 10;
    if (!full) digits = digits * 10 + digit;
    exponent += (behind_point ? -1 : 0) + (full ? 1 : 0);
  }
  if (at < text.size()) exponent += read_exponent(text.substr(at + 1));
  auto value = static_cast<double>(digits);  // rounded for the first time
  while (exponent < -kHighestPower && value != 0) {
    value /= powers[kHighestPower];
    exponent += kHighestPower;
  }
  if (value != 0 && exponent > kHighestPower) value = std::numeric_limits<double>::infinity();
  if (value != 0 && exponent < 0) value /= powers[static_cast<size_t>(-exponent)];
  if (value != 0 && exponent > 0 && exponent <= kHighestPower) {
    value *= powers[static_cast<size_t>(exponent)];
  }
  return negative ? -value : value;
}

}  // namespace tgi
