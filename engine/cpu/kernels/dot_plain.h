// f32 and f16 panels (and x in f32): one chain of fused multiply-adds over the columns in order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/line.h"
#include "engine/cpu/kernels/tile.h"
#include "engine/cpu/kernels/unrolled.h"
#include "engine/cpu/panel_layout.h"

namespace tgi {

template <typename Vector, typename Line>
class DotPlain {
 public:
  using V = Vector;
  static constexpr int kMaxAccumulators = V::kMaxAccumulators;
  static constexpr bool kPrefetchesForManyRows = kTilesPrefetch<V>;
  static constexpr int panels_for(int num_rows) { return tile_panels<V>(num_rows); }

  static int64_t x_bytes(int64_t k, int64_t /*group_size*/) {
    return round_up(k, 2) * static_cast<int64_t>(sizeof(float));
  }
  static void prepare(const float* x, int64_t k, int64_t /*group_size*/, std::byte* out) {
    __builtin_memcpy(out, x, static_cast<size_t>(k) * sizeof(float));
    if (k % 2 != 0) __builtin_memset(out + k * 4, 0, sizeof(float));
  }

  DotPlain(int64_t /*k*/, int64_t /*group_size*/, GroupHead /*head*/ = {}) {}

  template <int MR, int NP, typename Prefetch>
  [[gnu::always_inline]] void accumulate(const std::byte* x,
                                         int64_t x_stride_bytes,
                                         int64_t begin,
                                         int64_t end,
                                         const std::byte* const (&panels)[NP],
                                         V (&sums)[MR][NP],
                                         const Prefetch& prefetch) const {
    int64_t line = begin / 2 * Line::kBytes;
    for (int64_t i = begin; i < end; i += 2, line += Line::kBytes) {
      V weights[NP];
      unrolled<NP>(TGI_UNROLLED(j) {
        for (int64_t byte = 0; byte < Line::kBytes; byte += 64) {
          prefetch.fetch(j.value, panels[j.value] + line + byte, line + byte);
        }
        weights[j.value] = Line::template even<V>(panels[j.value] + line);
      });
      multiply_add(x + i * 4, x_stride_bytes, weights, sums);
      unrolled<NP>(
          TGI_UNROLLED(j) { weights[j.value] = Line::template odd<V>(panels[j.value] + line); });
      multiply_add(x + i * 4 + 4, x_stride_bytes, weights, sums);
      unrolled<MR>(
          TGI_UNROLLED(r) { unrolled<NP>(TGI_UNROLLED(j) { sums[r.value][j.value].pin(); }); });
    }
  }
};

}  // namespace tgi
