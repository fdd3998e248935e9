// The two 16-bit float formats as bit patterns. Conversions from f32 round to nearest even and keep
// NaN quiet with the top of its payload, as the x86 instructions do; the others are exact.
#pragma once

#include <bit>
#include <cstdint>

namespace tgi {

constexpr float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

constexpr uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

constexpr float f16_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t magnitude = half & 0x7FFFU;
  if (magnitude >= 0x7C00U) {
    const uint32_t quiet = magnitude > 0x7C00U ? 0x400000U : 0U;
    return std::bit_cast<float>(sign | 0x7F800000U | quiet | ((magnitude & 0x3FFU) << 13));
  }
  // Exact: a subnormal half is an integer times 2^-24.
  if (magnitude < 0x400U) {
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112U << 23)));
}

constexpr uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) {
    return static_cast<uint16_t>(sign | 0x7E00U | ((magnitude >> 13) & 0x1FFU));
  }
  if (magnitude >= 0x477FF000U) return static_cast<uint16_t>(sign | 0x7C00U);  // rounds to 65536
  if (magnitude < 0x38800000U) {
    // Below 2^-14: adding 1/2 leaves the result's bits, rounded once, at the end of the mantissa.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000U));
  }
  const uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
  return static_cast<uint16_t>(sign | ((rounded - (112U << 23)) >> 13));
}

}  // namespace tgi
