// I32x16 as two AVX2 registers, with the dot products of bytes of AVX-VNNI and without. Only for
// sources compiled with -mavx2 -mfma -mf16c, and -mavxvnni for the first.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/f32x16_avx2.h"

namespace tgi {

template <int kLevel>
struct BytesAvx2 {
  __m256i low, high;

  [[gnu::always_inline]] static BytesAvx2 load(const std::byte* from) {
    const auto* half = reinterpret_cast<const __m256i*>(from);
    return {_mm256_loadu_si256(half), _mm256_loadu_si256(half + 1)};
  }
  [[gnu::always_inline]] BytesAvx2 lower() const {
    const __m256i mask = _mm256_set1_epi8(0x0F);
    return {_mm256_and_si256(low, mask), _mm256_and_si256(high, mask)};
  }
  [[gnu::always_inline]] BytesAvx2 upper() const {
    return BytesAvx2{_mm256_srli_epi16(low, 4), _mm256_srli_epi16(high, 4)}.lower();
  }
  template <int kBits, int kPlace>
  [[gnu::always_inline]] BytesAvx2 with_upper(const BytesAvx2& line) const {
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
  [[gnu::always_inline]] BytesAvx2 looked_up(const uint8_t (&table)[16]) const {
    const __m256i both =
        _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(table)));
    return {_mm256_shuffle_epi8(both, low), _mm256_shuffle_epi8(both, high)};
  }
};

#if defined(__AVXVNNI__)
template <int kLevel>
struct VnniIntsAvx2 {
  using V = LanesAvx2<kLevel>;
  using Lines = BytesAvx2<kLevel>;
  static constexpr bool kPrefetchesForManyRows = true;

  __m256i low, high;

  [[gnu::always_inline]] static VnniIntsAvx2 set1(int32_t value) {
    return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)};
  }
  [[gnu::always_inline]] void add_dot(const Lines& lines, const std::byte* x) {
    const __m256i four = _mm256_set1_epi32(*reinterpret_cast<const int32_t*>(x));
    low = _mm256_dpbusd_avx_epi32(low, lines.low, four);
    high = _mm256_dpbusd_avx_epi32(high, lines.high, four);
  }
  [[gnu::always_inline]] V to_float() const {
    return {_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)};
  }
};
using I32x16AvxVnni = VnniIntsAvx2<kAvx2Level>;
#endif

// By the instruction that multiplies unsigned bytes with signed ones and adds pairs of products as
// int16 (vpmaddubsw): it saturates, so bytes of up to 255 are multiplied less 128, as magnitudes
// with the sign moved to x, and smaller ones are added as int16 for as long as these can't
// overflow.
template <int kLevel>
struct PairIntsAvx2 {
  using V = LanesAvx2<kLevel>;
  using Lines = BytesAvx2<kLevel>;
  static constexpr bool kPrefetchesForManyRows = false;

  // Sums of two products each, as int16.
  struct Partial {
    __m256i low, high;

    [[gnu::always_inline]] static Partial zero() {
      return {_mm256_setzero_si256(), _mm256_setzero_si256()};
    }
    [[gnu::always_inline]] void add_dot(const Lines& lines, const std::byte* x) {
      const __m256i four = _mm256_set1_epi32(*reinterpret_cast<const int32_t*>(x));
      low = _mm256_add_epi16(low, _mm256_maddubs_epi16(lines.low, four));
      high = _mm256_add_epi16(high, _mm256_maddubs_epi16(lines.high, four));
      // g++ would also add products of several lines before the sum.
      V::pin_halves(low, high);
    }
  };

  __m256i low, high;

  [[gnu::always_inline]] static PairIntsAvx2 set1(int32_t value) {
    return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)};
  }
  [[gnu::always_inline]] void add_dot_less_128(const Lines& lines, const std::byte* x) {
    const __m256i four = _mm256_set1_epi32(*reinterpret_cast<const int32_t*>(x));
    low = _mm256_add_epi32(low, dot_less_128(lines.low, four));
    high = _mm256_add_epi32(high, dot_less_128(lines.high, four));
    V::pin_halves(low, high);
  }
  [[gnu::always_inline]] void add(const Partial& partial) {
    const __m256i one = _mm256_set1_epi16(1);
    low = _mm256_add_epi32(low, _mm256_madd_epi16(partial.low, one));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(partial.high, one));
  }
  [[gnu::always_inline]] V to_float() const {
    return {_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)};
  }

 private:
  // Two products of 128 * 127 are the most that an int16 holds.
  [[gnu::always_inline]] static __m256i dot_less_128(__m256i bytes, __m256i x) {
    const __m256i value = _mm256_xor_si256(bytes, _mm256_set1_epi8(-128));
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(value), _mm256_sign_epi8(x, value));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  }
};
using I32x16Avx2 = PairIntsAvx2<kAvx2Level>;

}  // namespace tgi
