// Tiles: MR rows times NP panels of 16 columns, whose sums stay in registers. What a tile computes
// is a Dot (dot_plain.h, dot_pairs.h, dot_int.h):
//
//   V                                  sixteen float lanes
//   kPrefetchesForManyRows             whether tiles of rows of several fetch ahead
//   x_bytes(k, group_size)             of a prepared row of x
//   prepare(x, k, group_size, out)     x as the inner loop wants it, padded with zeros
//   Dot(k, group_size, head)
//   accumulate<MR, NP>(...)            sums[r][j] += x[r] . panel[j] over columns [begin, end)
//
// Each output is summed in an order that is the Dot's alone, so its bits depend on nothing but its
// own row and column: not on the tile's shape, the batch, threads or the instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/unrolled.h"

namespace tgi {

// What to fetch into the cache while a line of panel j is worked on: nothing, what this panel or
// the one that will take its place has further on, the same place of another panel, or a part of
// that: one tile of rows of several fetches its part, so that memory has work during all of them.
struct NoPrefetch {
  void fetch(int /*panel*/, const std::byte* /*line*/, int64_t /*offset*/) const {}
};

template <int NP, int kBytesAhead>
struct PrefetchNext {
  int64_t panel_bytes;
  [[gnu::always_inline]] void fetch(int /*panel*/, const std::byte* line, int64_t offset) const {
    const bool is_past = offset + kBytesAhead >= panel_bytes;
    __builtin_prefetch(line + kBytesAhead + (is_past ? (NP - 1) * panel_bytes : 0));
  }
};

// Into the second-level cache: the nearest takes too few lines at a time to keep memory busy.
template <int NP>
struct PrefetchOther {
  const std::byte* panels[NP];
  [[gnu::always_inline]] void fetch(int panel, const std::byte* /*line*/, int64_t offset) const {
    __builtin_prefetch(panels[panel] + offset, 0, 2);
  }
};

template <int NP>
struct PrefetchPart {
  const std::byte* panels[NP];  // where the part begins in each
  int64_t begin;                // offset of the first line that is worked on
  int shift;                    // log2 of the number of parts
  [[gnu::always_inline]] void fetch(int panel, const std::byte* /*line*/, int64_t offset) const {
    __builtin_prefetch(panels[panel] + ((offset - begin) >> shift), 0, 2);
  }
};

// sums[r][j] += x[r] * weights[j], x being f32.
template <typename V, int MR, int NP>
[[gnu::always_inline]] inline void multiply_add(const std::byte* x,
                                                int64_t x_stride_bytes,
                                                const V (&weights)[NP],
                                                V (&sums)[MR][NP]) {
  unrolled<MR>(TGI_UNROLLED(r) {
    const V value = V::set1(*reinterpret_cast<const float*>(x + r.value * x_stride_bytes));
    unrolled<NP>(TGI_UNROLLED(j) {
      sums[r.value][j.value] = V::fma(value, weights[j.value], sums[r.value][j.value]);
    });
  });
}

inline constexpr int kMaxTileRows = 6;

// With TGI_FEW_TILES (sanitizer builds) tiles have one panel and fetch nothing ahead, whatever
// suits the vector type: each shape takes seconds to compile, and all are made of the same code.
#ifdef TGI_FEW_TILES
inline constexpr bool kFewTiles = true;
#else
inline constexpr bool kFewTiles = false;
#endif

template <typename V>
constexpr int tile_panels(int num_rows) {
  return kFewTiles ? 1 : V::panels_for(num_rows);
}
template <typename V>
inline constexpr bool kTilesPrefetch = V::kPrefetches && !kFewTiles;

// Calls run.template operator()<MR>() for the value of num_rows, kLeast to kMaxTileRows.
template <int kLeast = 1, typename Run>
[[gnu::always_inline]] inline void with_rows(int64_t num_rows, Run run) {
  if constexpr (kLeast < kMaxTileRows) {
    if (num_rows > kLeast) return with_rows<kLeast + 1>(num_rows, run);
  }
  run.template operator()<kLeast>();
}

// Calls run.template operator()<Panels>(panel) for `NP` panels at a time, then for those that are
// left over one by one.
template <int NP, typename Run>
[[gnu::always_inline]] inline void for_panels(int64_t num_panels, Run run) {
  int64_t panel = 0;
  for (; panel + NP <= num_panels; panel += NP) run.template operator()<NP>(panel);
  for (; panel < num_panels; ++panel) run.template operator()<1>(panel);
}

// A tile of panels_for(rows) panels must fit the registers, or with few rows it would be left out.
template <typename Dot>
constexpr bool tiles_fit() {
  for (int rows = 1; rows <= kMaxTileRows; ++rows) {
    if (rows * Dot::panels_for(rows) > Dot::kMaxAccumulators) return false;
  }
  return true;
}

// Cuts `count` rows into tiles of at most kMaxTileRows, as even as can be: size of tile `index`.
struct RowTiles {
  static constexpr int kMinRowsOfSeveral = 3;  // 7 rows are a tile of 3 and one of 4
  int64_t count;
  int64_t num_tiles;
  constexpr explicit RowTiles(int64_t rows)
      : count(rows), num_tiles((rows + kMaxTileRows - 1) / kMaxTileRows) {}
  constexpr int64_t begin(int64_t index) const { return index * count / num_tiles; }
  constexpr int64_t size(int64_t index) const { return begin(index + 1) - begin(index); }
};

}  // namespace tgi
