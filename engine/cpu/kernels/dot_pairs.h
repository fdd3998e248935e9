// bf16 panels, x rounded to bf16. Columns are taken in blocks; of a block the products of the even
// columns are one chain of fused multiply-adds from 0, those of the odd ones another, and their sum
// is added to the result; denormals count as 0. That is what an AMX unit does within one
// instruction (measured: all bits agree), so with it, with the bf16 dot product of AVX-512 and with
// plain multiply-adds a model computes the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/tile.h"
#include "engine/cpu/panel_layout.h"

namespace tgi {

// `Pairs` says how one chain is computed:
//   V
//   kXBytes                    bytes of x per column
//   panels_for(num_rows)       that suit a tile of that many rows
//   prepare_block<kBlock>(x, out)
//   even_chain, odd_chain<MR, NP, kBlock>(x, stride, lines, sums, prefetch, offset)
template <typename Pairs, int64_t kBlock>
class DotPairs {
 public:
  using V = typename Pairs::V;
  static constexpr int kMaxAccumulators = V::kMaxAccumulators;
  static constexpr bool kPrefetchesForManyRows = kTilesPrefetch<V>;
  static constexpr int panels_for(int num_rows) { return Pairs::panels_for(num_rows); }

  static int64_t x_bytes(int64_t k, int64_t /*group_size*/) {
    return round_up(k, kBlock) * Pairs::kXBytes;
  }
  static void prepare(const float* x, int64_t k, int64_t /*group_size*/, std::byte* out) {
    int64_t i = 0;
    for (; i + kBlock <= k; i += kBlock) {
      Pairs::template prepare_block<kBlock>(x + i, out + i * Pairs::kXBytes);
    }
    if (i == k) return;
    alignas(64) float rest[kBlock] = {};
    __builtin_memcpy(rest, x + i, static_cast<size_t>(k - i) * sizeof(float));
    Pairs::template prepare_block<kBlock>(rest, out + i * Pairs::kXBytes);
  }

  DotPairs(int64_t /*k*/, int64_t /*group_size*/, GroupHead /*head*/ = {}) {}

  template <int MR, int NP, typename Prefetch>
  [[gnu::always_inline]] void accumulate(const std::byte* x,
                                         int64_t x_stride_bytes,
                                         int64_t begin,
                                         int64_t end,
                                         const std::byte* const (&panels)[NP],
                                         V (&sums)[MR][NP],
                                         const Prefetch& prefetch) const {
    for (int64_t i = begin; i < end; i += kBlock) {
      const std::byte* from = x + i * Pairs::kXBytes;
      const int64_t offset = i * 32;
      V even[MR][NP];
      V odd[MR][NP];
      fill_tile(even, V::zero());
      Pairs::template even_chain<MR, NP, kBlock>(from, x_stride_bytes, panels, offset, even,
                                                 prefetch);
      fill_tile(odd, V::zero());
      Pairs::template odd_chain<MR, NP, kBlock>(from, x_stride_bytes, panels, offset, odd,
                                                prefetch);
      unrolled<MR>(TGI_UNROLLED(r) {
        unrolled<NP>(TGI_UNROLLED(j) {
          sums[r.value][j.value] =
              sums[r.value][j.value] + (even[r.value][j.value] + odd[r.value][j.value]);
        });
      });
    }
  }
};

// By multiply-adds of f32, over lines in adjacent order. x: of each block the even columns as f32,
// then the odd ones.
template <typename Vector>
struct FmaPairs {
  using V = Vector;
  static constexpr int64_t kXBytes = 4;
  static constexpr int panels_for(int num_rows) { return tile_panels<V>(num_rows); }

  template <int64_t kBlock>
  static void prepare_block(const float* x, std::byte* out) {
    alignas(64) float rounded[kBlock];
    for (int64_t i = 0; i < kBlock; i += 16) {
      alignas(32) std::byte halves[32];
      // The product turns denormals to 0 before they can be rounded up to a normal number.
      (V::load(x + i) * V::set1(1.0F)).store_bf16(halves);
      V::load_bf16(halves).store(rounded + i);
    }
    auto* to = reinterpret_cast<float*>(out);
    for (int64_t i = 0; i < kBlock / 2; ++i) {
      to[i] = rounded[2 * i];
      to[kBlock / 2 + i] = rounded[2 * i + 1];
    }
  }

  template <int MR, int NP, int64_t kBlock, typename Prefetch>
  [[gnu::always_inline]] static void even_chain(const std::byte* x,
                                                int64_t x_stride_bytes,
                                                const std::byte* const (&panels)[NP],
                                                int64_t offset,
                                                V (&sums)[MR][NP],
                                                const Prefetch& prefetch) {
    for (int64_t i = 0; i < kBlock / 2; ++i) {
      V weights[NP];
      unrolled<NP>(TGI_UNROLLED(j) {
        const std::byte* line = panels[j.value] + offset + i * 64;
        prefetch.fetch(j.value, line, offset + i * 64);
        weights[j.value] = V::load_even_bf16(line);
      });
      multiply_add(x + i * 4, x_stride_bytes, weights, sums);
    }
  }

  template <int MR, int NP, int64_t kBlock, typename Prefetch>
  [[gnu::always_inline]] static void odd_chain(const std::byte* x,
                                               int64_t x_stride_bytes,
                                               const std::byte* const (&panels)[NP],
                                               int64_t offset,
                                               V (&sums)[MR][NP],
                                               const Prefetch& /*prefetch*/) {
    for (int64_t i = 0; i < kBlock / 2; ++i) {
      V weights[NP];
      unrolled<NP>(TGI_UNROLLED(j) {
        weights[j.value] = V::load_odd_bf16(panels[j.value] + offset + i * 64);
      });
      multiply_add(x + (kBlock / 2 + i) * 4, x_stride_bytes, weights, sums);
    }
  }
};

}  // namespace tgi
