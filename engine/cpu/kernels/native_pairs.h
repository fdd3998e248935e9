// DotPairs by the bf16 dot product of AVX-512 (vdpbf16ps), which adds the product of the upper
// halves, then that of the lower ones, each fused with the sum and denormals as 0. Over lines in
// even-odd order two instructions' worth of it are four links of a chain. Only for sources compiled
// with -mavx512bf16.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/f32x16_avx512.h"
#include "engine/cpu/kernels/tile.h"
#include "engine/cpu/kernels/unrolled.h"

namespace tgi {

// x: of each block the even columns in pairs (4i + 2, 4i), then the odd ones in pairs (4i + 3,
// 4i + 1).
template <int kLevel>
struct NativePairsOf {
  using V = LanesAvx512<kLevel>;
  static constexpr int64_t kXBytes = 2;
  // With more, both chains of a tile of many rows don't fit the registers, and of few rows memory
  // is read no faster.
  static constexpr int panels_for(int num_rows) {
    if constexpr (kFewTiles) return 1;
    return num_rows == 1 ? 4 : 2;
  }

  template <int64_t kBlock>
  static void prepare_block(const float* x, std::byte* out) {
    if constexpr (kBlock == 32) {
      const __m512i order = _mm512_cvtepu8_epi16(_mm256_setr_epi8(
          2, 0, 6, 4, 10, 8, 14, 12, 18, 16, 22, 20, 26, 24, 30, 28,  // even columns
          3, 1, 7, 5, 11, 9, 15, 13, 19, 17, 23, 21, 27, 25, 31, 29));
      const auto halves = reinterpret_cast<__m512i>(
          _mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + 16), _mm512_loadu_ps(x)));
      _mm512_storeu_si512(out, _mm512_permutexvar_epi16(order, halves));
    } else {
      static_assert(kBlock == 16);
      const __m256i order = _mm256_setr_epi16(2, 0, 6, 4, 10, 8, 14, 12, 3, 1, 7, 5, 11, 9, 15, 13);
      const auto halves = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_loadu_ps(x)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permutexvar_epi16(order, halves));
    }
  }

  template <int MR, int NP, int64_t kBlock, typename Prefetch>
  [[gnu::always_inline]] static void even_chain(const std::byte* x,
                                                int64_t x_stride_bytes,
                                                const std::byte* const (&panels)[NP],
                                                int64_t offset,
                                                V (&sums)[MR][NP],
                                                const Prefetch& prefetch) {
    chain<MR, NP, kBlock / 4>(x, x_stride_bytes, panels, offset, sums, prefetch);
  }

  template <int MR, int NP, int64_t kBlock, typename Prefetch>
  [[gnu::always_inline]] static void odd_chain(const std::byte* x,
                                               int64_t x_stride_bytes,
                                               const std::byte* const (&panels)[NP],
                                               int64_t offset,
                                               V (&sums)[MR][NP],
                                               const Prefetch& prefetch) {
    chain<MR, NP, kBlock / 4>(x + kBlock, x_stride_bytes, panels, offset + kBlock / 4 * 64, sums,
                              prefetch);
  }

 private:
  template <int MR, int NP, int64_t kLines, typename Prefetch>
  [[gnu::always_inline]] static void chain(const std::byte* x,
                                           int64_t x_stride_bytes,
                                           const std::byte* const (&panels)[NP],
                                           int64_t offset,
                                           V (&sums)[MR][NP],
                                           const Prefetch& prefetch) {
    for (int64_t i = 0; i < kLines; ++i) {
      __m512bh weights[NP];
      unrolled<NP>(TGI_UNROLLED(j) {
        const std::byte* line = panels[j.value] + offset + i * 64;
        prefetch.fetch(j.value, line, offset + i * 64);
        weights[j.value] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(line));
      });
      unrolled<MR>(TGI_UNROLLED(r) {
        const auto* word = reinterpret_cast<const int32_t*>(x + r.value * x_stride_bytes + i * 4);
        const auto pair = reinterpret_cast<__m512bh>(_mm512_set1_epi32(*word));
        unrolled<NP>(TGI_UNROLLED(j) {
          __m512& sum = sums[r.value][j.value].all;
          sum = _mm512_dpbf16_ps(sum, pair, weights[j.value]);
        });
      });
    }
  }
};
using NativePairs = NativePairsOf<kAvx512Level>;

// As bf16, denormals as 0: the instruction does both.
template <int kLevel>
void store_flushed_bf16(const LanesAvx512<kLevel>& x, std::byte* to) {
  const auto halves = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x.all));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), halves);
}

}  // namespace tgi
