// Sixteen float lanes as two AVX2 registers; the meaning of each operation is in f32x16_generic.h.
// Only for sources compiled with -mavx2 -mfma -mf16c.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace tgi {

// A type of its own for each set of flags, so that what is made of it is compiled with those flags
// alone.
#if defined(__AVXVNNI__)
static constexpr int kAvx2Level = 1;
#else
static constexpr int kAvx2Level = 0;
#endif

template <int kLevel>
struct LanesAvx2 {
  struct Mask {
    __m256 low, high;  // all bits of a lane set or clear
  };

  static constexpr int kMaxAccumulators = 6;  // twelve of the sixteen registers
  static constexpr int panels_for(int num_rows) {
    return num_rows == 1 ? 4 : num_rows <= 3 ? 2 : 1;
  }
  static constexpr bool kPrefetches = true;
  static constexpr int64_t kMatmulBlockBytes = 65536;  // second-level caches have 256 KiB and more

  __m256 low, high;

  void pin() { pin_halves(low, high); }
  // Of a vector of any lanes.
  template <typename Half>
  [[gnu::always_inline]] static void pin_halves(Half& low, Half& high) {
    Half first = low;
    Half second = high;
    asm("" : "+x"(first), "+x"(second));
    low = first;
    high = second;
  }

  static LanesAvx2 set1(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
  static LanesAvx2 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static LanesAvx2 load(const float* from) {
    return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
  }
  void store(float* to) const {
    _mm256_storeu_ps(to, low);
    _mm256_storeu_ps(to + 8, high);
  }
  static LanesAvx2 load_first(const float* from, int64_t count) {
    const Mask mask = first_lanes(count);
    return {_mm256_maskload_ps(from, _mm256_castps_si256(mask.low)),
            _mm256_maskload_ps(from + 8, _mm256_castps_si256(mask.high))};
  }
  void store_first(float* to, int64_t count) const {
    const Mask mask = first_lanes(count);
    _mm256_maskstore_ps(to, _mm256_castps_si256(mask.low), low);
    _mm256_maskstore_ps(to + 8, _mm256_castps_si256(mask.high), high);
  }

  static LanesAvx2 load_even_bf16(const std::byte* from) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(load_ints(from), 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(load_ints(from + 32), 16))};
  }
  static LanesAvx2 load_odd_bf16(const std::byte* from) {
    const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xFFFF0000U));
    return {_mm256_castsi256_ps(_mm256_and_si256(load_ints(from), upper)),
            _mm256_castsi256_ps(_mm256_and_si256(load_ints(from + 32), upper))};
  }
  static LanesAvx2 load_f16(const std::byte* from) {
    return {_mm256_cvtph_ps(load_halves(from)), _mm256_cvtph_ps(load_halves(from + 16))};
  }
  static LanesAvx2 load_bf16(const std::byte* from) {
    const auto widen = [](__m128i bits) {
      return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
    };
    return {widen(load_halves(from)), widen(load_halves(from + 16))};
  }
  // 16 signed bytes.
  static LanesAvx2 load_int8(const std::byte* from) {
    const __m128i bytes = load_halves(from);
    const auto widen = [](__m128i eight) {
      return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight));
    };
    return {widen(bytes), widen(_mm_srli_si128(bytes, 8))};
  }
  static LanesAvx2 load_exponents(const std::byte* from) {
    const __m128i bytes = load_halves(from);
    const auto widen = [](__m128i eight) {
      return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(eight), 23));
    };
    return {widen(bytes), widen(_mm_srli_si128(bytes, 8))};
  }
  // As in f32x16_avx512.h, with a table of what is below the normal numbers alone.
  static void decode_e4m3(const std::byte* codes, std::byte* out) {
    const __m256i subnormal = _mm256_broadcastsi128_si256(
        _mm_setr_epi16(0, 0x3B00, 0x3B80, 0x3BC0, 0x3C00, 0x3C20, 0x3C40, 0x3C60));
    for (int64_t i = 0; i < 64; i += 16) {
      const __m256i code = _mm256_cvtepu8_epi16(load_halves(codes + i));
      const __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi16(0x7F));
      const __m256i normal =
          _mm256_add_epi16(_mm256_slli_epi16(magnitude, 4), _mm256_set1_epi16(0x3C00));
      // Its two bytes are those at 2 * magnitude and behind.
      const __m256i place = _mm256_add_epi16(
          _mm256_mullo_epi16(magnitude, _mm256_set1_epi16(0x0202)), _mm256_set1_epi16(0x0100));
      const __m256i is_subnormal = _mm256_cmpgt_epi16(_mm256_set1_epi16(8), magnitude);
      const __m256i is_nan = _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7F));
      const __m256i finite =
          _mm256_blendv_epi8(normal, _mm256_shuffle_epi8(subnormal, place), is_subnormal);
      const __m256i value = _mm256_blendv_epi8(finite, _mm256_set1_epi16(0x7FC0), is_nan);
      const __m256i sign = _mm256_and_si256(_mm256_slli_epi16(code, 8),
                                            _mm256_set1_epi16(static_cast<int16_t>(0x8000)));
      store_ints(out + i * 2, _mm256_or_si256(value, sign));
    }
  }
  static void decode_int8(const std::byte* codes, std::byte* out) {
    for (int64_t i = 0; i < 64; i += 16) {
      const LanesAvx2 value = load_int8(codes + i);
      const __m256i packed =
          _mm256_packus_epi32(_mm256_srli_epi32(_mm256_castps_si256(value.low), 16),
                              _mm256_srli_epi32(_mm256_castps_si256(value.high), 16));
      store_ints(out + i * 2, _mm256_permute4x64_epi64(packed, 0xD8));
    }
  }
  void store_low_bytes(std::byte* to) const {
    const __m256i byte = _mm256_set1_epi32(0xFF);
    const __m256i words = _mm256_packus_epi32(_mm256_and_si256(_mm256_castps_si256(low), byte),
                                              _mm256_and_si256(_mm256_castps_si256(high), byte));
    // Fours of lanes: 0, 8, 0, 8 in the lower half, 4, 12, 4, 12 in the upper one.
    const __m256i fours = _mm256_packus_epi16(words, words);
    const __m256i in_order =
        _mm256_permutevar8x32_epi32(fours, _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5));
    store_halves(to, _mm256_castsi256_si128(in_order));
  }
  void store_f16(std::byte* to) const {
    store_halves(to, _mm256_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    store_halves(to + 16, _mm256_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  void store_bf16(std::byte* to) const {
    const __m256i packed = _mm256_packus_epi32(bf16_bits(low), bf16_bits(high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute4x64_epi64(packed, 0xD8));
  }

  static void transpose_words(const std::byte* const* rows, std::byte* out) {
    for (int half = 0; half < 2; ++half) {
      transpose_eight(rows + half * 8, 0, out + half * 32);
      transpose_eight(rows + half * 8, 32, out + 8 * 64 + half * 32);
    }
  }
  static void split_pairs(std::byte* line) {
    const __m256i a = load_ints(line);
    const __m256i b = load_ints(line + 32);
    const __m256i low = _mm256_set1_epi32(0xFFFF);
    const __m256i first = _mm256_packus_epi32(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
    const __m256i second = _mm256_packus_epi32(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16));
    store_ints(line, _mm256_permute4x64_epi64(first, 0xD8));
    store_ints(line + 32, _mm256_permute4x64_epi64(second, 0xD8));
  }

  friend LanesAvx2 operator+(const LanesAvx2& a, const LanesAvx2& b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  friend LanesAvx2 operator-(const LanesAvx2& a, const LanesAvx2& b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  friend LanesAvx2 operator*(const LanesAvx2& a, const LanesAvx2& b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  friend LanesAvx2 operator/(const LanesAvx2& a, const LanesAvx2& b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  static LanesAvx2 fma(const LanesAvx2& a, const LanesAvx2& b, const LanesAvx2& c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static LanesAvx2 max(const LanesAvx2& a, const LanesAvx2& b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  static LanesAvx2 min(const LanesAvx2& a, const LanesAvx2& b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  LanesAvx2 abs() const {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    return {_mm256_andnot_ps(sign, low), _mm256_andnot_ps(sign, high)};
  }
  LanesAvx2 sqrt() const { return {_mm256_sqrt_ps(low), _mm256_sqrt_ps(high)}; }
  LanesAvx2 operator-() const {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    return {_mm256_xor_ps(sign, low), _mm256_xor_ps(sign, high)};
  }
  LanesAvx2 with_sign_of(const LanesAvx2& other) const {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    return {_mm256_or_ps(low, _mm256_and_ps(sign, other.low)),
            _mm256_or_ps(high, _mm256_and_ps(sign, other.high))};
  }
  LanesAvx2 add_exponent(const LanesAvx2& shifted) const {
    const auto add = [](__m256 value, __m256 bits) {
      return _mm256_castsi256_ps(_mm256_add_epi32(
          _mm256_castps_si256(value), _mm256_slli_epi32(_mm256_castps_si256(bits), 23)));
    };
    return {add(low, shifted.low), add(high, shifted.high)};
  }
  void split_nearest(LanesAvx2& whole, LanesAvx2& rest) const {
    whole = (*this + set1(0x1.8p23F)) - set1(0x1.8p23F);
    rest = *this - whole;
  }
  LanesAvx2 times_power_of_two(const LanesAvx2& whole) const {
    return select(less(whole, set1(-126.0F)), zero(), add_exponent(whole + set1(0x1.8p23F)));
  }
  void split(LanesAvx2& mantissa, LanesAvx2& exponent) const {
    split_half(low, mantissa.low, exponent.low);
    split_half(high, mantissa.high, exponent.high);
  }
  static LanesAvx2 from_ints(const int32_t* from) {
    const auto* bytes = reinterpret_cast<const std::byte*>(from);
    return {_mm256_cvtepi32_ps(load_ints(bytes)), _mm256_cvtepi32_ps(load_ints(bytes + 32))};
  }

  static Mask first_lanes(int64_t count) {
    const int clamped = static_cast<int>(count < 0 ? 0 : count > 16 ? 16 : count);
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return {
        _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(clamped), lane)),
        _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(clamped - 8), lane)),
    };
  }
  static Mask less(const LanesAvx2& a, const LanesAvx2& b) {
    return {_mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ)};
  }
  static Mask is_nan(const LanesAvx2& a) {
    return {_mm256_cmp_ps(a.low, a.low, _CMP_UNORD_Q), _mm256_cmp_ps(a.high, a.high, _CMP_UNORD_Q)};
  }
  static Mask equal(const LanesAvx2& a, const LanesAvx2& b) {
    return {_mm256_cmp_ps(a.low, b.low, _CMP_EQ_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_EQ_OQ)};
  }
  static uint32_t mask_bits(const Mask& mask) {
    return static_cast<uint32_t>(_mm256_movemask_ps(mask.low)) |
           static_cast<uint32_t>(_mm256_movemask_ps(mask.high)) << 8;
  }
  static Mask lanes(uint32_t bits) {
    const __m256i all = _mm256_set1_epi32(static_cast<int>(bits));
    const __m256i low = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i high = _mm256_slli_epi32(low, 8);
    return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, low), low)),
            _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, high), high))};
  }
  static Mask and_not(const Mask& a, const Mask& b) {
    return {_mm256_andnot_ps(b.low, a.low), _mm256_andnot_ps(b.high, a.high)};
  }
  static LanesAvx2 select(const Mask& mask, const LanesAvx2& yes, const LanesAvx2& no) {
    return {_mm256_blendv_ps(no.low, yes.low, mask.low),
            _mm256_blendv_ps(no.high, yes.high, mask.high)};
  }

  float sum() const {
    const __m256 eight = _mm256_add_ps(low, high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  float max_lane() const {
    const __m256 eight = _mm256_max_ps(low, high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
  }

 private:
  static __m256i load_ints(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void store_ints(std::byte* to, __m256i value) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
  }
  // 8 x 8 words from `offset` bytes on; output rows are 64 bytes apart.
  static void transpose_eight(const std::byte* const* rows, int64_t offset, std::byte* out) {
    __m256i t[8];
    for (int i = 0; i < 4; ++i) {
      const __m256i a = load_ints(rows[2 * i] + offset);
      const __m256i b = load_ints(rows[2 * i + 1] + offset);
      t[2 * i] = _mm256_unpacklo_epi32(a, b);
      t[2 * i + 1] = _mm256_unpackhi_epi32(a, b);
    }
    for (int j = 0; j < 4; ++j) {  // columns j and j + 4
      const auto four = [&](int i) {
        const __m256i a = t[i + j / 2];
        const __m256i b = t[i + 2 + j / 2];
        return j % 2 == 0 ? _mm256_unpacklo_epi64(a, b) : _mm256_unpackhi_epi64(a, b);
      };
      const __m256i upper_rows = four(0);
      const __m256i lower_rows = four(4);
      store_ints(out + j * 64, _mm256_permute2x128_si256(upper_rows, lower_rows, 0x20));
      store_ints(out + (j + 4) * 64, _mm256_permute2x128_si256(upper_rows, lower_rows, 0x31));
    }
  }
  static __m128i load_halves(const std::byte* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  static void store_halves(std::byte* to, __m128i value) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value);
  }
  // In the low half of each 32-bit lane.
  static __m256i bf16_bits(__m256 value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i tie = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i bias = _mm256_add_epi32(tie, _mm256_set1_epi32(0x7FFF));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
    const __m256i quiet = _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(rounded, quiet, nan);
  }
  static void split_half(__m256 value, __m256& mantissa, __m256& exponent) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i e = _mm256_srai_epi32(_mm256_sub_epi32(bits, _mm256_set1_epi32(0x3F3504F3)), 23);
    mantissa = _mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_slli_epi32(e, 23)));
    exponent = _mm256_cvtepi32_ps(e);
  }
};
using F32x16Avx2 = LanesAvx2<kAvx2Level>;

}  // namespace tgi
