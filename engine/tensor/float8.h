// The 8-bit float e4m3 (OCP "fn": no infinity, 0x7F and 0xFF are NaN, the largest value is 448) as
// bit patterns. Conversion from f32 rounds to nearest even and saturates.
//
// Source: OCP 8-bit Floating Point Specification (OFP8), revision 1.0.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tgi {

inline constexpr float kLargestE4M3 = 448.0F;

constexpr float e4m3_to_f32(uint8_t bits) {
  const uint32_t magnitude = bits & 0x7FU;
  const float sign = (bits & 0x80U) != 0 ? -1.0F : 1.0F;
  if (magnitude == 0x7F) return std::numeric_limits<float>::quiet_NaN();
  // Subnormals are multiples of 2^-9.
  if (magnitude < 8) return sign * static_cast<float>(magnitude) * 0x1p-9F;
  return sign * std::bit_cast<float>((magnitude << 20) + (120U << 23));
}

constexpr uint8_t f32_to_e4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint8_t>((bits >> 24) & 0x80U);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<uint8_t>(sign | 0x7FU);
  if (magnitude >= 0x43E00000U) return static_cast<uint8_t>(sign | 0x7EU);  // 448 and above
  if (magnitude < 0x3C800000U) {
    // Below 2^-6: adding 2^14 leaves multiples of 2^-9, rounded once, at the end of the mantissa.
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14F;
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(shifted) & 0xFU));
  }
  const uint32_t rounded = magnitude + 0x7FFFFU + ((magnitude >> 20) & 1U);
  return static_cast<uint8_t>(sign | ((rounded - (120U << 23)) >> 20));
}

}  // namespace tgi
