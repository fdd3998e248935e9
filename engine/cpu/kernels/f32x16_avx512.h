// Sixteen float lanes as one AVX-512 register; the meaning of each operation is in
// f32x16_generic.h. Only for sources compiled with -mavx512f -mavx512bw -mavx512dq -mavx512vl.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace tgi {

// A type of its own for each set of flags, so that what is made of it is compiled with those flags
// alone.
#if defined(__AMX_TILE__) || defined(__AMXTILE__)
static constexpr int kAvx512Level = 3;
#elif defined(__AVX512BF16__)
static constexpr int kAvx512Level = 2;
#elif defined(__AVX512VNNI__)
static constexpr int kAvx512Level = 1;
#else
static constexpr int kAvx512Level = 0;
#endif

template <int kLevel>
struct LanesAvx512 {
  using Mask = __mmask16;

  static constexpr int kMaxAccumulators = 24;  // of thirty-two registers
  static constexpr int panels_for(int num_rows) { return num_rows <= 6 ? 4 : 1; }
  static constexpr bool kPrefetches = true;
  static constexpr int64_t kMatmulBlockBytes = 131072;

  __m512 all;

  void pin() {}

  static LanesAvx512 set1(float value) { return {_mm512_set1_ps(value)}; }
  static LanesAvx512 zero() { return {_mm512_setzero_ps()}; }
  static LanesAvx512 load(const float* from) { return {_mm512_loadu_ps(from)}; }
  void store(float* to) const { _mm512_storeu_ps(to, all); }
  static LanesAvx512 load_first(const float* from, int64_t count) {
    return {_mm512_maskz_loadu_ps(first_lanes(count), from)};
  }
  void store_first(float* to, int64_t count) const {
    _mm512_mask_storeu_ps(to, first_lanes(count), all);
  }

  static LanesAvx512 load_even_bf16(const std::byte* from) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(from), 16))};
  }
  static LanesAvx512 load_odd_bf16(const std::byte* from) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000U));
    return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(from), upper))};
  }
  static LanesAvx512 load_f16(const std::byte* from) {
    return {_mm512_cvtph_ps(load_halves(from))};
  }
  static LanesAvx512 load_bf16(const std::byte* from) {
    const __m512i bits = _mm512_cvtepu16_epi32(load_halves(from));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(bits, 16))};
  }
  // 16 signed bytes.
  static LanesAvx512 load_int8(const std::byte* from) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
  }
  static LanesAvx512 load_exponents(const std::byte* from) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(bytes), 23))};
  }
  // e4m3's exponent is 120 below that of bf16 and its three digits are the upper ones of seven;
  // what is below its normal numbers, or none, stands in a table.
  static void decode_e4m3(const std::byte* codes, std::byte* out) {
    alignas(64) static constexpr uint16_t kSpecial[32] = {
        0, 0x3B00, 0x3B80, 0x3BC0, 0x3C00, 0x3C20, 0x3C40, 0x3C60, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0,      0,      0,      0,      0,      0,      0,      0, 0, 0, 0, 0, 0, 0, 0x7FC0};
    const __m512i special = _mm512_load_si512(kSpecial);  // by the lower 5 bits
    for (int64_t i = 0; i < 64; i += 32) {
      const __m512i code = _mm512_cvtepu8_epi16(load_halves(codes + i));
      const __m512i magnitude = _mm512_and_si512(code, _mm512_set1_epi16(0x7F));
      const __m512i above = _mm512_sub_epi16(magnitude, _mm512_set1_epi16(8));
      const __mmask32 is_special = _mm512_cmpge_epu16_mask(above, _mm512_set1_epi16(0x7F - 8));
      const __m512i normal =
          _mm512_add_epi16(_mm512_slli_epi16(above, 4), _mm512_set1_epi16(0x3C80));
      const __m512i value = _mm512_mask_permutexvar_epi16(normal, is_special, magnitude, special);
      // value | (code << 8 & 0x8000)
      const __m512i sign = _mm512_set1_epi16(static_cast<int16_t>(0x8000));
      _mm512_storeu_si512(out + i * 2,
                          _mm512_ternarylogic_epi32(value, _mm512_slli_epi16(code, 8), sign, 0xF8));
    }
  }
  // The upper half of an f32 is what bf16 keeps of it.
  static void decode_int8(const std::byte* codes, std::byte* out) {
    alignas(64) static constexpr uint16_t kUpper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                        23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                        45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    const __m512i upper = _mm512_load_si512(kUpper);
    for (int64_t i = 0; i < 64; i += 32) {
      const __m512i first = _mm512_castps_si512(load_int8(codes + i).all);
      const __m512i second = _mm512_castps_si512(load_int8(codes + i + 16).all);
      _mm512_storeu_si512(out + i * 2, _mm512_permutex2var_epi16(first, upper, second));
    }
  }
  void store_low_bytes(std::byte* to) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm512_cvtepi32_epi8(_mm512_castps_si512(all)));
  }
  void store_f16(std::byte* to) const {
    store_halves(to, _mm512_cvtps_ph(all, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  void store_bf16(std::byte* to) const {
    const __m512i bits = _mm512_castps_si512(all);
    const __m512i tie = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i bias = _mm512_add_epi32(tie, _mm512_set1_epi32(0x7FFF));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
    const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
    store_halves(to, _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, is_nan(*this), quiet)));
  }

  static void transpose_words(const std::byte* const* rows, std::byte* out) {
    __m512i t[16];
    for (int i = 0; i < 8; ++i) {
      const __m512i a = _mm512_loadu_si512(rows[2 * i]);
      const __m512i b = _mm512_loadu_si512(rows[2 * i + 1]);
      t[2 * i] = _mm512_unpacklo_epi32(a, b);
      t[2 * i + 1] = _mm512_unpackhi_epi32(a, b);
    }
    for (int j = 0; j < 4; ++j) {  // columns j, j + 4, j + 8, j + 12
      __m512i four[4];             // four rows each
      for (int i = 0; i < 4; ++i) {
        const __m512i a = t[4 * i + j / 2];
        const __m512i b = t[4 * i + 2 + j / 2];
        four[i] = j % 2 == 0 ? _mm512_unpacklo_epi64(a, b) : _mm512_unpackhi_epi64(a, b);
      }
      const __m512i a = _mm512_shuffle_i32x4(four[0], four[1], 0x44);
      const __m512i b = _mm512_shuffle_i32x4(four[2], four[3], 0x44);
      const __m512i c = _mm512_shuffle_i32x4(four[0], four[1], 0xEE);
      const __m512i d = _mm512_shuffle_i32x4(four[2], four[3], 0xEE);
      _mm512_storeu_si512(out + j * 64, _mm512_shuffle_i32x4(a, b, 0x88));
      _mm512_storeu_si512(out + (j + 4) * 64, _mm512_shuffle_i32x4(a, b, 0xDD));
      _mm512_storeu_si512(out + (j + 8) * 64, _mm512_shuffle_i32x4(c, d, 0x88));
      _mm512_storeu_si512(out + (j + 12) * 64, _mm512_shuffle_i32x4(c, d, 0xDD));
    }
  }
  static void split_pairs(std::byte* line) {
    const __m512i bits = _mm512_loadu_si512(line);
    store_halves(line, _mm512_cvtepi32_epi16(bits));
    store_halves(line + 32, _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
  }

  friend LanesAvx512 operator+(const LanesAvx512& a, const LanesAvx512& b) {
    return {_mm512_add_ps(a.all, b.all)};
  }
  friend LanesAvx512 operator-(const LanesAvx512& a, const LanesAvx512& b) {
    return {_mm512_sub_ps(a.all, b.all)};
  }
  friend LanesAvx512 operator*(const LanesAvx512& a, const LanesAvx512& b) {
    return {_mm512_mul_ps(a.all, b.all)};
  }
  friend LanesAvx512 operator/(const LanesAvx512& a, const LanesAvx512& b) {
    return {_mm512_div_ps(a.all, b.all)};
  }
  static LanesAvx512 fma(const LanesAvx512& a, const LanesAvx512& b, const LanesAvx512& c) {
    return {_mm512_fmadd_ps(a.all, b.all, c.all)};
  }
  static LanesAvx512 max(const LanesAvx512& a, const LanesAvx512& b) {
    return {_mm512_max_ps(a.all, b.all)};
  }
  static LanesAvx512 min(const LanesAvx512& a, const LanesAvx512& b) {
    return {_mm512_min_ps(a.all, b.all)};
  }
  LanesAvx512 abs() const { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0F), all)}; }
  LanesAvx512 sqrt() const { return {_mm512_sqrt_ps(all)}; }
  LanesAvx512 operator-() const { return {_mm512_xor_ps(_mm512_set1_ps(-0.0F), all)}; }
  LanesAvx512 with_sign_of(const LanesAvx512& other) const {
    return {_mm512_or_ps(all, _mm512_and_ps(_mm512_set1_ps(-0.0F), other.all))};
  }
  LanesAvx512 add_exponent(const LanesAvx512& shifted) const {
    return {_mm512_castsi512_ps(_mm512_add_epi32(
        _mm512_castps_si512(all), _mm512_slli_epi32(_mm512_castps_si512(shifted.all), 23)))};
  }
  // Rounded as the sum with 1.5 * 2^23 is, to the nearest; the rest of an infinity is 0.
  void split_nearest(LanesAvx512& whole, LanesAvx512& rest) const {
    rest = {_mm512_reduce_ps(all, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
    whole = {_mm512_sub_ps(all, rest.all)};
  }
  LanesAvx512 times_power_of_two(const LanesAvx512& whole) const {
    return {_mm512_scalef_ps(all, whole.all)};
  }
  void split(LanesAvx512& mantissa, LanesAvx512& exponent) const {
    const __m512i bits = _mm512_castps_si512(all);
    const __m512i e = _mm512_srai_epi32(_mm512_sub_epi32(bits, _mm512_set1_epi32(0x3F3504F3)), 23);
    mantissa = {_mm512_castsi512_ps(_mm512_sub_epi32(bits, _mm512_slli_epi32(e, 23)))};
    exponent = {_mm512_cvtepi32_ps(e)};
  }
  static LanesAvx512 from_ints(const int32_t* from) {
    return {_mm512_cvtepi32_ps(_mm512_loadu_si512(from))};
  }

  static Mask first_lanes(int64_t count) {
    return static_cast<Mask>(count <= 0 ? 0U : count >= 16 ? 0xFFFFU : (1U << count) - 1U);
  }
  static Mask less(const LanesAvx512& a, const LanesAvx512& b) {
    return _mm512_cmp_ps_mask(a.all, b.all, _CMP_LT_OQ);
  }
  static Mask is_nan(const LanesAvx512& a) {
    return _mm512_cmp_ps_mask(a.all, a.all, _CMP_UNORD_Q);
  }
  static Mask equal(const LanesAvx512& a, const LanesAvx512& b) {
    return _mm512_cmp_ps_mask(a.all, b.all, _CMP_EQ_OQ);
  }
  static uint32_t mask_bits(Mask mask) { return mask; }
  static Mask lanes(uint32_t bits) { return static_cast<Mask>(bits); }
  static Mask and_not(Mask a, Mask b) { return static_cast<Mask>(a & ~b); }
  static LanesAvx512 select(Mask mask, const LanesAvx512& yes, const LanesAvx512& no) {
    return {_mm512_mask_blend_ps(mask, no.all, yes.all)};
  }

  float sum() const {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(all), upper_half());
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  float max_lane() const {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(all), upper_half());
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
  }

 private:
  __m256 upper_half() const { return _mm512_extractf32x8_ps(all, 1); }
  static __m256i load_halves(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void store_halves(std::byte* to, __m256i value) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
  }
};

using F32x16Avx512 = LanesAvx512<kAvx512Level>;

}  // namespace tgi
