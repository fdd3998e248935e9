// y = x W^T over panels. For few rows the weights stream from memory once; for many, k is cut so
// that a group of panels stays in the second-level cache while all rows pass it. Partial sums wait
// in `out` meanwhile: storing a float changes no bits.
#pragma once

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/kernels/tile.h"

namespace tgi {

inline constexpr int kMatmulPrefetchBytes = 3072;
// Of what comes next, each tile of rows of the first few fetches a part: more parts than memory
// needs cost the multiplications more than they bring.
inline constexpr int kMaxPartsShift = 2;

// Not inlined: how g++ deals out the registers of a tile would depend on what stands around it.
template <typename Dot, int MR, int NP, typename Prefetch>
[[gnu::noinline]] void matmul_tile(const MatmulBlock& block,
                                   const Dot& dot,
                                   const Prefetch& prefetch,
                                   int64_t row,
                                   int64_t panel,
                                   int64_t k_begin,
                                   int64_t k_end) {
  using V = typename Dot::V;
  const std::byte* panels[NP];
  for (int j = 0; j < NP; ++j) panels[j] = block.panels + (panel + j) * block.panel_bytes;
  const int64_t column = panel * 16;
  float* const out = block.out + row * block.out_stride + column;
  const auto width = [&](int j) { return block.num_outputs - column - j * 16; };

  V sums[MR][NP];
  if (k_begin == 0) {
    fill_tile(sums, V::zero());
  } else {
    unrolled<MR>(TGI_UNROLLED(r) {
      unrolled<NP>(TGI_UNROLLED(j) {
        const float* from = out + r.value * block.out_stride + j.value * 16;
        sums[r.value][j.value] = V::load_first(from, width(j.value));
      });
    });
  }
  dot.template accumulate<MR, NP>(block.x + row * block.x_stride_bytes, block.x_stride_bytes,
                                  k_begin, k_end, panels, sums, prefetch);
  const bool add_bias = block.bias != nullptr && k_end == block.k;
  unrolled<MR>(TGI_UNROLLED(r) {
    unrolled<NP>(TGI_UNROLLED(j) {
      V sum = sums[r.value][j.value];
      const int64_t first = column + j.value * 16;
      if (add_bias) sum = sum + V::load_first(block.bias + first, width(j.value));
      sum.store_first(out + r.value * block.out_stride + j.value * 16, width(j.value));
    });
  });
}

// Where the first panel lies that will be worked on after those of a group, and where in it.
inline const std::byte* panels_after(const MatmulBlock& block,
                                     int64_t next_panel,
                                     int64_t k_begin,
                                     int64_t k_end) {
  const auto at = [&](int64_t k) { return block.panel_bytes * k / block.k; };
  if (next_panel < block.num_panels) {
    return block.panels + next_panel * block.panel_bytes + at(k_begin);
  }
  return k_end < block.k ? block.panels + at(k_end) : block.next_panels;
}

// As many rows as one tile has. The few panels that are left over fetch nothing, here and with many
// rows: these tiles are compiled once for both.
template <typename Dot, int MR>
void matmul_few_rows(const MatmulBlock& block, const Dot& dot) {
  constexpr int kPanels = Dot::panels_for(MR);
  for_panels<kPanels>(block.num_panels, [&]<int Panels>(int64_t panel) {
    if constexpr (Panels == kPanels && kTilesPrefetch<typename Dot::V>) {
      const PrefetchNext<Panels, kMatmulPrefetchBytes> ahead{block.panel_bytes};
      matmul_tile<Dot, MR, Panels>(block, dot, ahead, 0, panel, 0, block.k);
    } else {
      matmul_tile<Dot, MR, Panels>(block, dot, NoPrefetch{}, 0, panel, 0, block.k);
    }
  });
}

// Rows of several tiles, which have the panels that suit the highest of them.
template <typename Dot>
void matmul_many_rows(const MatmulBlock& block, const Dot& dot, int64_t k_begin, int64_t k_end) {
  constexpr int kPanels = Dot::panels_for(kMaxTileRows);
  const RowTiles tiles(block.num_rows);
  for_panels<kPanels>(block.num_panels, [&]<int Panels>(int64_t panel) {
    constexpr bool kFetches = Panels == kPanels && Dot::kPrefetchesForManyRows;
    const std::byte* const next = panels_after(block, panel + Panels, k_begin, k_end);
    PrefetchPart<Panels> ahead{};
    ahead.begin = block.panel_bytes * k_begin / block.k;
    while (ahead.shift < kMaxPartsShift && tiles.num_tiles >> (ahead.shift + 1) > 0) ++ahead.shift;
    const int64_t part = (block.panel_bytes * k_end / block.k - ahead.begin) >> ahead.shift;
    for (int64_t t = 0; t < tiles.num_tiles; ++t) {
      const bool has_part = kFetches && next != nullptr && t >> ahead.shift == 0;
      for (int j = 0; j < Panels; ++j) {
        ahead.panels[j] = has_part ? next + j * block.panel_bytes + t * part : block.panels;
      }
      with_rows<RowTiles::kMinRowsOfSeveral>(tiles.size(t), [&]<int MR>() {
        const int64_t row = tiles.begin(t);
        if constexpr (kFetches) {
          if (has_part) {
            matmul_tile<Dot, MR, Panels>(block, dot, ahead, row, panel, k_begin, k_end);
            return;
          }
        }
        matmul_tile<Dot, MR, Panels>(block, dot, NoPrefetch{}, row, panel, k_begin, k_end);
      });
    }
  });
}

template <typename Dot>
void matmul_block(const MatmulBlock& block) {
  static_assert(tiles_fit<Dot>());
  const Dot dot(block.k, block.group_size, block.head);
  if (block.num_rows <= kMaxTileRows) {
    with_rows(block.num_rows, [&]<int MR>() { matmul_few_rows<Dot, MR>(block, dot); });
    return;
  }
  constexpr int kPanels = Dot::panels_for(kMaxTileRows);
  const int64_t cols_that_fit = Dot::V::kMatmulBlockBytes * block.k / (kPanels * block.panel_bytes);
  const int64_t unit = block.group_size == 0 ? kPairBlock : 2 * block.group_size;
  const int64_t step = cols_that_fit < unit ? unit : cols_that_fit - cols_that_fit % unit;
  for (int64_t k = 0; k < block.k; k += step) {
    matmul_many_rows(block, dot, k, k + step < block.k ? k + step : block.k);
  }
}

template <typename Dot>
constexpr MatmulKernel matmul_kernel() {
  return {.x_bytes = Dot::x_bytes, .prepare = Dot::prepare, .block = matmul_block<Dot>};
}

}  // namespace tgi
