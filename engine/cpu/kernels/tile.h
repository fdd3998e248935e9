// The one inner loop of matmul and attention: a tile of MR rows times NP panels of 16 columns in
// registers. Each output is one chain of fused multiply-adds over k in order, so its bits depend on
// nothing but its own row and column: not on the tile's shape, the batch, threads or the
// instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tgi {

// What to fetch into the cache while a line of panel j is worked on: nothing, the same panel
// further on, or the same place of another panel.
struct NoPrefetch {
  void fetch(int /*panel*/, const std::byte* /*line*/, int64_t /*offset*/) const {}
};

template <int kBytesAhead>
struct PrefetchSame {
  [[gnu::always_inline]] void fetch(int /*panel*/,
                                    const std::byte* line,
                                    int64_t /*offset*/) const {
    __builtin_prefetch(line + kBytesAhead);
  }
};

template <int NP>
struct PrefetchOther {
  const std::byte* panels[NP];
  [[gnu::always_inline]] void fetch(int panel, const std::byte* /*line*/, int64_t offset) const {
    __builtin_prefetch(panels[panel] + offset);
  }
};

// sums[r][j] += sum over k of x[r][k] * panels[j][k].
template <typename V, typename Line, int MR, int NP, typename Prefetch>
[[gnu::always_inline]] inline void accumulate(const float* x,
                                              int64_t x_stride,
                                              int64_t k,
                                              const std::byte* const (&panels)[NP],
                                              V (&sums)[MR][NP],
                                              const Prefetch& prefetch) {
  int64_t line = 0;
  int64_t i = 0;
  for (; i + 2 <= k; i += 2, line += Line::kBytes) {
    V weights[NP];
    for (int j = 0; j < NP; ++j) {
      for (int64_t byte = 0; byte < Line::kBytes; byte += 64) {
        prefetch.fetch(j, panels[j] + line + byte, line + byte);
      }
      weights[j] = Line::template even<V>(panels[j] + line);
    }
    for (int r = 0; r < MR; ++r) {
      const V value = V::set1(x[r * x_stride + i]);
      for (int j = 0; j < NP; ++j) sums[r][j] = V::fma(value, weights[j], sums[r][j]);
    }
    for (int j = 0; j < NP; ++j) weights[j] = Line::template odd<V>(panels[j] + line);
    for (int r = 0; r < MR; ++r) {
      const V value = V::set1(x[r * x_stride + i + 1]);
      for (int j = 0; j < NP; ++j) sums[r][j] = V::fma(value, weights[j], sums[r][j]);
    }
  }
  if (i == k) return;
  for (int j = 0; j < NP; ++j) {
    const V weights = Line::template even<V>(panels[j] + line);
    for (int r = 0; r < MR; ++r) {
      sums[r][j] = V::fma(V::set1(x[r * x_stride + i]), weights, sums[r][j]);
    }
  }
}

// Calls run.template operator()<MR>() for the value of num_rows, 1 to 6.
template <typename Run>
[[gnu::always_inline]] inline void with_rows(int64_t num_rows, Run run) {
  switch (num_rows) {
    case 1:
      return run.template operator()<1>();
    case 2:
      return run.template operator()<2>();
    case 3:
      return run.template operator()<3>();
    case 4:
      return run.template operator()<4>();
    case 5:
      return run.template operator()<5>();
    default:
      return run.template operator()<6>();
  }
}

inline constexpr int64_t kMaxTileRows = 6;

// A tile of panels_for(rows) panels must fit the registers, or with few rows it would be left out.
template <typename V>
constexpr bool tiles_fit() {
  for (int rows = 1; rows <= kMaxTileRows; ++rows) {
    if (rows * V::panels_for(rows) > V::kMaxAccumulators) return false;
  }
  return true;
}

// Cuts `count` rows into tiles of at most kMaxTileRows, as even as can be: size of tile `index`.
struct RowTiles {
  int64_t count;
  int64_t num_tiles;
  constexpr explicit RowTiles(int64_t rows)
      : count(rows), num_tiles((rows + kMaxTileRows - 1) / kMaxTileRows) {}
  constexpr int64_t begin(int64_t index) const { return index * count / num_tiles; }
  constexpr int64_t size(int64_t index) const { return begin(index + 1) - begin(index); }
};

}  // namespace tgi
