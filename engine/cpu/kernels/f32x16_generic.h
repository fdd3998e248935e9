// Sixteen float lanes in plain C++, for any processor. Also the definition of what the AVX2 and
// AVX-512 types must compute: every operation here is exactly rounded (IEEE 754 single precision,
// to nearest even), so the three give the same bits; of a NaN, only that it is one. Written to be
// vectorised by the compiler.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/tensor/float8.h"
#include "engine/tensor/half.h"

namespace tgi {

struct F32x16Generic {
  using Mask = uint32_t;  // bit i: lane i

  // Accumulators that a matmul tile may hold.
  static constexpr int kMaxAccumulators = 6;
  // Panels of a tile with this many rows: as few as there can be, because each shape of a tile
  // takes seconds to compile.
  static constexpr int panels_for(int /*num_rows*/) { return 1; }
  static constexpr bool kPrefetches = false;
  // Of a group of panels that are gone through for all rows before the next columns: small beside
  // the second-level cache, large enough that the partial sums are seldom stored.
  static constexpr int64_t kMatmulBlockBytes = 131072;

  float lane[16];

  // Says that a loop's sum is to be in registers: with few of them g++ puts one into memory rather
  // than load x later, and each addition waits for the one before to be stored.
  void pin() {}

  template <typename Op>
  static F32x16Generic map(Op op) {
    F32x16Generic result;
    for (int i = 0; i < 16; ++i) result.lane[i] = op(i);
    return result;
  }
  template <typename Op>
  static Mask test(Op op) {
    Mask mask = 0;
    for (int i = 0; i < 16; ++i) mask |= static_cast<Mask>(op(i) ? 1 : 0) << i;
    return mask;
  }

  static F32x16Generic set1(float value) {
    return map([&](int) { return value; });
  }
  static F32x16Generic zero() { return set1(0.0F); }
  static F32x16Generic load(const float* from) {
    F32x16Generic result;
    std::memcpy(result.lane, from, sizeof result.lane);
    return result;
  }
  void store(float* to) const { std::memcpy(to, lane, sizeof lane); }
  // The first `count` lanes, 0 <= count <= 16; the others are zero. Touches no other memory.
  static F32x16Generic load_first(const float* from, int64_t count) {
    return map([&](int i) { return i < count ? from[i] : 0.0F; });
  }
  void store_first(float* to, int64_t count) const {
    for (int i = 0; i < count && i < 16; ++i) to[i] = lane[i];
  }

  // The lower and the upper bf16 of 16 pairs.
  static F32x16Generic load_even_bf16(const std::byte* from) {
    uint32_t pair[16];
    std::memcpy(pair, from, sizeof pair);
    return map([&](int i) { return std::bit_cast<float>(pair[i] << 16); });
  }
  static F32x16Generic load_odd_bf16(const std::byte* from) {
    uint32_t pair[16];
    std::memcpy(pair, from, sizeof pair);
    return map([&](int i) { return std::bit_cast<float>(pair[i] & 0xFFFF0000U); });
  }
  static F32x16Generic load_f16(const std::byte* from) {
    uint16_t bits[16];
    std::memcpy(bits, from, sizeof bits);
    return map([&](int i) { return f16_to_f32(bits[i]); });
  }
  static F32x16Generic load_bf16(const std::byte* from) {
    uint16_t bits[16];
    std::memcpy(bits, from, sizeof bits);
    return map([&](int i) { return bf16_to_f32(bits[i]); });
  }
  // 16 signed bytes.
  static F32x16Generic load_int8(const std::byte* from) {
    return map([&](int i) {
      return static_cast<float>(static_cast<int8_t>(std::to_integer<uint8_t>(from[i])));
    });
  }
  // 2^(byte - 127); of 0, 0.
  static F32x16Generic load_exponents(const std::byte* from) {
    return map([&](int i) {
      const uint32_t bits = std::to_integer<uint32_t>(from[i]) << 23;
      float value = 0;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    });
  }
  // Of a KV cache, 64 of them to bf16, which holds every one exactly.
  static void decode_e4m3(const std::byte* codes, std::byte* out) {
    static constexpr std::array<uint16_t, 256> kTable = [] {
      std::array<uint16_t, 256> table{};
      for (uint32_t code = 0; code < 256; ++code) {
        const float magnitude = e4m3_to_f32(static_cast<uint8_t>(code & 0x7FU));
        table[code] =
            static_cast<uint16_t>(std::bit_cast<uint32_t>(magnitude) >> 16 | (code & 0x80U) << 8);
      }
      return table;
    }();
    for (int i = 0; i < 64; ++i) {
      std::memcpy(out + 2 * i, &kTable[std::to_integer<size_t>(codes[i])], 2);
    }
  }
  static void decode_int8(const std::byte* codes, std::byte* out) {
    for (int i = 0; i < 64; ++i) {
      const auto value =
          static_cast<float>(static_cast<int8_t>(std::to_integer<uint8_t>(codes[i])));
      const auto bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      std::memcpy(out + 2 * i, &bits, sizeof bits);
    }
  }
  // The lowest byte of each lane's bits.
  void store_low_bytes(std::byte* to) const {
    for (int i = 0; i < 16; ++i) {
      to[i] = static_cast<std::byte>(std::bit_cast<uint32_t>(lane[i]) & 0xFFU);
    }
  }
  void store_f16(std::byte* to) const {
    uint16_t bits[16];
    for (int i = 0; i < 16; ++i) bits[i] = f32_to_f16(lane[i]);
    std::memcpy(to, bits, sizeof bits);
  }
  void store_bf16(std::byte* to) const {
    uint16_t bits[16];
    for (int i = 0; i < 16; ++i) bits[i] = f32_to_bf16(lane[i]);
    std::memcpy(to, bits, sizeof bits);
  }

  // out (16 x 16 words) = the transpose of 16 words of each of 16 rows.
  static void transpose_words(const std::byte* const* rows, std::byte* out) {
    for (int64_t row = 0; row < 16; ++row) {
      for (int64_t col = 0; col < 16; ++col) {
        std::memcpy(out + (col * 16 + row) * 4, rows[row] + col * 4, 4);
      }
    }
  }
  // In place: 16 pairs of 16-bit values to the 16 first, then the 16 second.
  static void split_pairs(std::byte* line) {
    uint16_t from[32];
    uint16_t to[32];
    std::memcpy(from, line, sizeof from);
    for (int i = 0; i < 16; ++i) {
      to[i] = from[2 * i];
      to[16 + i] = from[2 * i + 1];
    }
    std::memcpy(line, to, sizeof to);
  }

  friend F32x16Generic operator+(const F32x16Generic& a, const F32x16Generic& b) {
    return map([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  friend F32x16Generic operator-(const F32x16Generic& a, const F32x16Generic& b) {
    return map([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  friend F32x16Generic operator*(const F32x16Generic& a, const F32x16Generic& b) {
    return map([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  friend F32x16Generic operator/(const F32x16Generic& a, const F32x16Generic& b) {
    return map([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  // a * b + c, rounded once.
  static F32x16Generic fma(const F32x16Generic& a, const F32x16Generic& b, const F32x16Generic& c) {
    return map([&](int i) { return fma_once(a.lane[i], b.lane[i], c.lane[i]); });
  }
  // b when either is NaN, as the x86 instructions do.
  static F32x16Generic max(const F32x16Generic& a, const F32x16Generic& b) {
    return map([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static F32x16Generic min(const F32x16Generic& a, const F32x16Generic& b) {
    return map([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  F32x16Generic abs() const {
    return map([&](int i) {
      return std::bit_cast<float>(std::bit_cast<uint32_t>(lane[i]) & 0x7FFFFFFFU);
    });
  }
  F32x16Generic sqrt() const {
    return map([&](int i) { return __builtin_sqrtf(lane[i]); });
  }
  F32x16Generic operator-() const {
    return map([&](int i) {
      return std::bit_cast<float>(std::bit_cast<uint32_t>(lane[i]) ^ 0x80000000U);
    });
  }
  // The magnitude of this with the sign of `sign`; this must not be negative.
  F32x16Generic with_sign_of(const F32x16Generic& sign) const {
    return map([&](int i) {
      const uint32_t bit = std::bit_cast<uint32_t>(sign.lane[i]) & 0x80000000U;
      return std::bit_cast<float>(std::bit_cast<uint32_t>(lane[i]) | bit);
    });
  }
  // Adds the integer in the low bits of `shifted` (as left there by adding 1.5 * 2^23) to the
  // exponent: this * 2^n for results in the normal range.
  F32x16Generic add_exponent(const F32x16Generic& shifted) const {
    return map([&](int i) {
      return std::bit_cast<float>(std::bit_cast<uint32_t>(lane[i]) +
                                  (std::bit_cast<uint32_t>(shifted.lane[i]) << 23));
    });
  }
  // this = whole + rest, the nearest whole number and at most a half. For numbers above -2^22.
  void split_nearest(F32x16Generic& whole, F32x16Generic& rest) const {
    whole = (*this + set1(0x1.8p23F)) - set1(0x1.8p23F);
    rest = *this - whole;
  }
  // this * 2^whole of a number in [0.5, 2] and a whole number up to 1, also minus infinity. What is
  // below the smallest normal number is 0 or counts as 0.
  F32x16Generic times_power_of_two(const F32x16Generic& whole) const {
    return select(less(whole, set1(-126.0F)), zero(), add_exponent(whole + set1(0x1.8p23F)));
  }
  // this = mantissa * 2^exponent with mantissa in [sqrt(1/2), sqrt(2)), for positive normal
  // numbers.
  void split(F32x16Generic& mantissa, F32x16Generic& exponent) const {
    for (int i = 0; i < 16; ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(lane[i]);
      const int32_t e = static_cast<int32_t>(bits - 0x3F3504F3U) >> 23;
      mantissa.lane[i] = std::bit_cast<float>(bits - (static_cast<uint32_t>(e) << 23));
      exponent.lane[i] = static_cast<float>(e);
    }
  }
  static F32x16Generic from_ints(const int32_t* from) {
    return map([&](int i) { return static_cast<float>(from[i]); });
  }

  // Lanes [0, count); any count.
  static Mask first_lanes(int64_t count) {
    return count <= 0 ? 0U : count >= 16 ? 0xFFFFU : (1U << count) - 1U;
  }
  static Mask less(const F32x16Generic& a, const F32x16Generic& b) {
    return test([&](int i) { return a.lane[i] < b.lane[i]; });
  }
  static Mask is_nan(const F32x16Generic& a) {
    return test([&](int i) { return a.lane[i] != a.lane[i]; });
  }
  static Mask equal(const F32x16Generic& a, const F32x16Generic& b) {
    return test([&](int i) { return a.lane[i] == b.lane[i]; });
  }
  static uint32_t mask_bits(Mask mask) { return mask; }
  static Mask lanes(uint32_t bits) { return bits; }  // bit i: lane i
  static Mask and_not(Mask a, Mask b) { return a & ~b; }
  static F32x16Generic select(Mask mask, const F32x16Generic& yes, const F32x16Generic& no) {
    return map([&](int i) { return ((mask >> i) & 1U) != 0 ? yes.lane[i] : no.lane[i]; });
  }

  // Lane i + lane i + 8, then + 4, + 2, + 1: the one tree.
  float sum() const {
    float part[8];
    for (int i = 0; i < 8; ++i) part[i] = lane[i] + lane[i + 8];
    for (int i = 0; i < 4; ++i) part[i] = part[i] + part[i + 4];
    for (int i = 0; i < 2; ++i) part[i] = part[i] + part[i + 2];
    return part[0] + part[1];
  }
  float max_lane() const {
    float part[8];
    for (int i = 0; i < 8; ++i) part[i] = greater(lane[i], lane[i + 8]);
    for (int i = 0; i < 4; ++i) part[i] = greater(part[i], part[i + 4]);
    for (int i = 0; i < 2; ++i) part[i] = greater(part[i], part[i + 2]);
    return greater(part[0], part[1]);
  }

  // Rounds once, with or without the instruction: the product is exact in double, the sum is
  // rounded to odd there, and rounding that to float is then correct (Boldo and Melquiond, 2008).
  static float fma_once(float a, float b, float c) {
#ifdef __FP_FAST_FMAF
    return __builtin_fmaf(a, b, c);
#else
    const double product = static_cast<double>(a) * static_cast<double>(b);
    const double addend = static_cast<double>(c);
    const double sum = product + addend;
    const double virtual_addend = sum - product;
    const double error = (product - (sum - virtual_addend)) + (addend - virtual_addend);
    const uint64_t bits = std::bit_cast<uint64_t>(sum);
    const bool inexact = error < 0.0 || error > 0.0;  // false for infinities and NaN
    const bool even = (bits & 1U) == 0;
    const bool away = (error > 0.0) == (sum > 0.0);
    const uint64_t odd_bits = away ? bits + 1 : bits - 1;
    return static_cast<float>(std::bit_cast<double>(inexact && even ? odd_bits : bits));
#endif
  }

 private:
  static float greater(float a, float b) {
    return a > b ? a : b;
  }
};

}  // namespace tgi
