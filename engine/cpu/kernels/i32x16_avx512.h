// I32x16 as AVX-512 registers, with VNNI's dot products of bytes and without. Only for sources
// compiled with -mavx512f -mavx512bw -mavx512dq -mavx512vl, and -mavx512vnni for the first.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/f32x16_avx512.h"

namespace tgi {

template <int kLevel>
struct BytesAvx512 {
  __m512i all;

  [[gnu::always_inline]] static BytesAvx512 load(const std::byte* from) {
    return {_mm512_loadu_si512(from)};
  }
  [[gnu::always_inline]] BytesAvx512 lower() const {
    return {_mm512_and_si512(all, _mm512_set1_epi8(0x0F))};
  }
  [[gnu::always_inline]] BytesAvx512 upper() const {
    return BytesAvx512{_mm512_srli_epi16(all, 4)}.lower();
  }
  template <int kBits, int kPlace>
  [[gnu::always_inline]] BytesAvx512 with_upper(const BytesAvx512& line) const {
    constexpr int kShift = 4 - kPlace * kBits;
    const __m512i mask = _mm512_set1_epi8(static_cast<char>(((1 << kBits) - 1) << 4));
    const __m512i bits = kShift >= 0 ? _mm512_slli_epi16(line.all, kShift >= 0 ? kShift : 0)
                                     : _mm512_srli_epi16(line.all, kShift < 0 ? -kShift : 0);
    constexpr int kOrOfAnd = 0xF8;
    return {_mm512_ternarylogic_epi32(all, bits, mask, kOrOfAnd)};
  }
  [[gnu::always_inline]] BytesAvx512 looked_up(const uint8_t (&table)[16]) const {
    const __m128i one = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
    return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(one), all)};
  }
  [[gnu::always_inline]] BytesAvx512 minus(int offset) const {
    return {_mm512_sub_epi8(all, _mm512_set1_epi8(static_cast<char>(offset)))};
  }
  [[gnu::always_inline]] void store(std::byte* to) const { _mm512_storeu_si512(to, all); }
};

#if defined(__AVX512VNNI__)
template <int kLevel>
struct VnniIntsAvx512 {
  using V = LanesAvx512<kLevel>;
  using Lines = BytesAvx512<kLevel>;
  static constexpr bool kPrefetchesForManyRows = true;

  // As int32, which is what the instruction takes: with __m512i g++ moves each sum back and forth.
  using Sums = int32_t __attribute__((vector_size(64)));
  Sums all;

  [[gnu::always_inline]] static VnniIntsAvx512 set1(int32_t value) {
    return {reinterpret_cast<Sums>(_mm512_set1_epi32(value))};
  }
  [[gnu::always_inline]] void add_dot(const Lines& lines, const std::byte* x) {
    const __m512i four = _mm512_set1_epi32(*reinterpret_cast<const int32_t*>(x));
    all = reinterpret_cast<Sums>(
        _mm512_dpbusd_epi32(reinterpret_cast<__m512i>(all), lines.all, four));
  }
  [[gnu::always_inline]] V to_float() const {
    return {_mm512_cvtepi32_ps(reinterpret_cast<__m512i>(all))};
  }
};
using I32x16Vnni = VnniIntsAvx512<kAvx512Level>;
#endif

// By vpmaddubsw, as in i32x16_avx2.h.
template <int kLevel>
struct PairIntsAvx512 {
  using V = LanesAvx512<kLevel>;
  using Lines = BytesAvx512<kLevel>;
  static constexpr bool kPrefetchesForManyRows = false;

  struct Partial {
    __m512i all;

    [[gnu::always_inline]] static Partial zero() { return {_mm512_setzero_si512()}; }
    [[gnu::always_inline]] void add_dot(const Lines& lines, const std::byte* x) {
      const __m512i four = _mm512_set1_epi32(*reinterpret_cast<const int32_t*>(x));
      all = _mm512_add_epi16(all, _mm512_maddubs_epi16(lines.all, four));
    }
  };

  __m512i all;

  [[gnu::always_inline]] static PairIntsAvx512 set1(int32_t value) {
    return {_mm512_set1_epi32(value)};
  }
  [[gnu::always_inline]] void add_dot_less_128(const Lines& lines, const std::byte* x) {
    const __m512i four = _mm512_set1_epi32(*reinterpret_cast<const int32_t*>(x));
    const __m512i value = _mm512_xor_si512(lines.all, _mm512_set1_epi8(-128));
    const __mmask64 is_negative = _mm512_movepi8_mask(value);
    const __m512i signed_four =
        _mm512_mask_sub_epi8(four, is_negative, _mm512_setzero_si512(), four);
    const __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(value), signed_four);
    all = _mm512_add_epi32(all, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
  }
  [[gnu::always_inline]] void add(const Partial& partial) {
    all = _mm512_add_epi32(all, _mm512_madd_epi16(partial.all, _mm512_set1_epi16(1)));
  }
  [[gnu::always_inline]] V to_float() const { return {_mm512_cvtepi32_ps(all)}; }
};
using I32x16Avx512 = PairIntsAvx512<kAvx512Level>;

}  // namespace tgi
