// I32x16 as two AVX2 registers. Only for sources compiled with -mavx2 -mfma -mf16c.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/f32x16_avx2.h"

namespace tgi {

// x: of four columns (0, 2) as a pair of int16, then (1, 3): sums of two products can't saturate.
struct I32x16Avx2 {
  using V = F32x16Avx2;
  static constexpr int64_t kXBytes = 2;
  static constexpr bool kPrefetchesForManyRows = false;

  struct Lines {
    __m256i low, high;

    [[gnu::always_inline]] static Lines load(const std::byte* from) {
      const auto* half = reinterpret_cast<const __m256i*>(from);
      return {_mm256_loadu_si256(half), _mm256_loadu_si256(half + 1)};
    }
    [[gnu::always_inline]] Lines lower() const {
      const __m256i mask = _mm256_set1_epi8(0x0F);
      return {_mm256_and_si256(low, mask), _mm256_and_si256(high, mask)};
    }
    [[gnu::always_inline]] Lines upper() const {
      return Lines{_mm256_srli_epi16(low, 4), _mm256_srli_epi16(high, 4)}.lower();
    }
    template <int kBits, int kPlace>
    [[gnu::always_inline]] Lines with_upper(const Lines& line) const {
      return {or_upper<kBits, kPlace>(low, line.low), or_upper<kBits, kPlace>(high, line.high)};
    }
    template <int kBits, int kPlace>
    [[gnu::always_inline]] static __m256i or_upper(__m256i lower, __m256i line) {
      constexpr int kShift = 4 - kPlace * kBits;
      const __m256i mask = _mm256_set1_epi8(static_cast<char>(((1 << kBits) - 1) << 4));
      const __m256i bits = kShift >= 0 ? _mm256_slli_epi16(line, kShift >= 0 ? kShift : 0)
                                       : _mm256_srli_epi16(line, kShift < 0 ? -kShift : 0);
      return _mm256_or_si256(lower, _mm256_and_si256(bits, mask));
    }
    [[gnu::always_inline]] Lines looked_up(const uint8_t (&table)[16]) const {
      const __m256i both =
          _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(table)));
      return {_mm256_shuffle_epi8(both, low), _mm256_shuffle_epi8(both, high)};
    }
  };

  __m256i low, high;

  [[gnu::always_inline]] static I32x16Avx2 set1(int32_t value) {
    return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)};
  }
  [[gnu::always_inline]] void add_dot(const Lines& lines, const std::byte* x) {
    const auto* pair = reinterpret_cast<const int32_t*>(x);
    const __m256i first = _mm256_set1_epi32(pair[0]);
    const __m256i second = _mm256_set1_epi32(pair[1]);
    low = add_half(low, lines.low, first, second);
    high = add_half(high, lines.high, first, second);
  }
  [[gnu::always_inline]] V to_float() const {
    return {_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)};
  }

  static void spread(const int8_t* quantised, int64_t count, std::byte* out) {
    for (int64_t i = 0; i < count; i += 4) {
      const int16_t four[4] = {quantised[i], quantised[i + 2], quantised[i + 1], quantised[i + 3]};
      __builtin_memcpy(out + i * 2, four, sizeof four);
    }
  }

 private:
  [[gnu::always_inline]] static __m256i add_half(__m256i sum,
                                                 __m256i lines,
                                                 __m256i first,
                                                 __m256i second) {
    const __m256i even = _mm256_and_si256(lines, _mm256_set1_epi16(0x00FF));
    const __m256i odd = _mm256_srli_epi16(lines, 8);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(even, first));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(odd, second));
  }
};

}  // namespace tgi
