// Conversions between float and the 16- and 8-bit formats, bit for bit as the hardware does them:
// to nearest, ties to even. By integer arithmetic, so that they are the same on every CPU.
#pragma once

#include <bit>
#include <cstdint>

namespace tgi::cuda_emulation {

// The magnitude of x, which is finite, in a format of `kMantissa` bits of mantissa whose exponent
// has the bias `kBias` (< 127). Too large a value comes out as a code above the largest one.
template <int kMantissa, int kBias>
constexpr uint32_t encode_magnitude(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7fffffffu;
  const int exponent = static_cast<int>(bits >> 23) - 127;
  uint32_t significant = bits;
  int dropped = 23 - kMantissa;
  uint32_t rebias = static_cast<uint32_t>(127 - kBias) << kMantissa;
  if (exponent < 1 - kBias) {  // without the leading one: shifted to the smallest exponent
    significant = (bits & 0x7fffffu) | 0x800000u;
    dropped += 1 - kBias - exponent;
    rebias = 0;
    if (dropped > 25) return 0;
  }
  const uint32_t odd = significant >> dropped & 1u;
  return ((significant + (1u << (dropped - 1)) - 1u + odd) >> dropped) - rebias;
}

constexpr uint16_t f16_from_float(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  const uint32_t sign = bits >> 16 & 0x8000u;
  uint32_t magnitude = 0x7c00u;
  if ((bits & 0x7fffffffu) < 0x7f800000u) magnitude = encode_magnitude<10, 15>(x);
  return static_cast<uint16_t>(sign | (magnitude > 0x7c00u ? 0x7c00u : magnitude));
}
constexpr float f16_to_float(uint16_t x) {
  const uint32_t sign = static_cast<uint32_t>(x & 0x8000u) << 16;
  uint32_t magnitude = static_cast<uint32_t>(x & 0x7fffu) << 13;
  if (magnitude >= 0x7c00u << 13) {
    magnitude += (255u - 31u) << 23;
  } else {
    // Also right without the leading one: the product is exact.
    magnitude = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  }
  return std::bit_cast<float>(sign | magnitude);
}

constexpr uint16_t bf16_from_float(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
constexpr float bf16_to_float(uint16_t x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
}

// e4m3 has no infinity: what is too large becomes 448.
constexpr uint8_t e4m3_from_float(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7f;
  const uint32_t sign = bits >> 24 & 0x80u;
  uint32_t magnitude = 0x7eu;
  if ((bits & 0x7fffffffu) < 0x7f800000u) magnitude = encode_magnitude<3, 7>(x);
  return static_cast<uint8_t>(sign | (magnitude > 0x7eu ? 0x7eu : magnitude));
}
constexpr float e4m3_to_float(uint8_t x) {
  const uint32_t sign = static_cast<uint32_t>(x & 0x80u) << 24;
  uint32_t magnitude = static_cast<uint32_t>(x & 0x7fu) << 20;
  if (magnitude == 0x7fu << 20) {
    magnitude = 0x7fffffffu;
  } else {
    magnitude = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p120f);
  }
  return std::bit_cast<float>(sign | magnitude);
}

}  // namespace tgi::cuda_emulation

// What __half and __nv_bfloat16 have in common: storage, conversions, and arithmetic that rounds
// after each operation.
#define TGI_EMULATED_NARROW_FLOAT(name, pair, raw, encode, decode)                    \
  struct raw {                                                                        \
    unsigned short x;                                                                 \
  };                                                                                  \
  struct __attribute__((aligned(2))) name {                                           \
    name() = default;                                                                 \
    constexpr name(float value) : __x(tgi::cuda_emulation::encode(value)) {}          \
    constexpr explicit name(double value) : name(static_cast<float>(value)) {}        \
    constexpr explicit name(int value) : name(static_cast<float>(value)) {}           \
    constexpr name(raw bits) : __x(bits.x) {}                                         \
    constexpr operator float() const { return tgi::cuda_emulation::decode(__x); }     \
    constexpr operator raw() const { return {__x}; }                                  \
    friend constexpr name operator+(name a, name b) { return {float(a) + float(b)}; } \
    friend constexpr name operator-(name a, name b) { return {float(a) - float(b)}; } \
    friend constexpr name operator*(name a, name b) { return {float(a) * float(b)}; } \
    friend constexpr name operator/(name a, name b) { return {float(a) / float(b)}; } \
                                                                                      \
   protected:                                                                         \
    unsigned short __x;                                                               \
  };                                                                                  \
  struct __attribute__((aligned(4))) pair {                                           \
    name x;                                                                           \
    name y;                                                                           \
  };
