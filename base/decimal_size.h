// "3.21 GB": decimal, as the hub and disks count, in the unit that fits.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>

namespace tgi {

inline std::string decimal_size(int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  constexpr std::array kUnits = {"kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return value < 10 ? fmt::format("{:.2f} {}", value, kUnits[unit])
                    : fmt::format("{:.{}f} {}", value, value < 99.95 ? 1 : 0, kUnits[unit]);
}

}  // namespace tgi
