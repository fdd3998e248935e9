// The two products of attention over a tile of positions, on vectors: scores of queries with keys,
// and softmax weights with values. What multiplies is a class like VectorProducts, amx_attention.h
// has another one; all give the same bits:
//
//   V                                   sixteen float lanes
//   Tile                                the CacheTile it reads
//   kSuitableRows                       of a call
//   rows_at_once()                      rows that go through score, softmax and weigh together
//   prepare_query(from, r)              (head_dim) of row r, as score wants it
//   prepare_weights(weights, r, chunk)  of 16 positions and row r of those at once, as weigh wants
//   them score(tile, first, count)           scores = q k^T of these rows, for chunks that hold
//   positions weigh(tile, first, count)           sums = sums * rescale + weights v, of the same
//   chunks
//
// Included only by the one source per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/cpu/kernels/cache_tile.h"
#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/kernels/tile.h"

namespace tgi {

inline constexpr int64_t kWeightBytes = kAttentionTile * 4;

// Rows of a call, in its workspace.
struct AttentionRows {
  int64_t count = 0;
  int64_t width = 0;    // value_dim rounded up to 16
  int64_t q_bytes = 0;  // of a prepared query
  std::byte* q = nullptr;
  std::byte* weights = nullptr;  // (rows at once, kWeightBytes)
  float* sums = nullptr;         // (count, width)
  float* scores = nullptr;       // (rows at once, 64)
  float* rescale = nullptr;      // (count)
};

// Rows that go through at once.
struct AttentionPass {
  int64_t first = 0;
  int64_t count = 0;  // 0 or less: there are none
};

// KeyDot multiplies with panels of keys, ValueDot with the 16 positions of a panel of values.
template <typename KeyDot, typename ValueDot, DType kDType, PairOrder kOrder>
class VectorProducts {
 public:
  using V = typename KeyDot::V;
  using Tile = CacheTile<V, kDType, kOrder>;
  static constexpr int64_t kSuitableRows = 24;

  VectorProducts(const AttentionBlock& block, const AttentionRows& rows)
      : head_dim_(block.head_dim), rows_(rows) {}

  void prepare_query(const float* from, int64_t r) const {
    KeyDot::prepare(from, head_dim_, 0, rows_.q + r * rows_.q_bytes);
  }
  [[gnu::always_inline]] static void prepare_weights(const V& weights,
                                                     int64_t chunk,
                                                     std::byte* to) {
    alignas(64) float values[kChunk];
    weights.store(values);
    ValueDot::prepare(values, kChunk, 0, to + chunk * kChunk * 4);
  }

  int64_t rows_at_once() const { return rows_.count; }
  void score(const Tile& tile, const AttentionPass& /*all*/) const {
    with_panels([&]<int NP>() {
      for_panels<NP>(tile.num_chunks(),
                     [&]<int Panels>(int64_t chunk) { score_chunks<Panels>(tile, chunk); });
    });
  }

  void weigh(const Tile& tile, const AttentionPass& /*all*/) const {
    with_panels([&]<int NP>() {
      for_panels<NP>(rows_.width / 16,
                     [&]<int Panels>(int64_t panel) { weigh_panels<Panels>(tile, panel); });
    });
  }

 private:
  // Calls run with the number of panels that suits the tiles of rows: few rows need several panels
  // to keep the multipliers busy.
  template <typename Run>
  void with_panels(Run run) const {
    const RowTiles tiles(rows_.count);
    const int64_t highest = tiles.size(tiles.num_tiles - 1);
    if (highest == 1) return run.template operator()<KeyDot::panels_for(1)>();
    if (highest <= 3) return run.template operator()<KeyDot::panels_for(3)>();
    return run.template operator()<KeyDot::panels_for(kMaxTileRows)>();
  }

  // Calls run(prefetch, tile of rows) for all tiles of rows; the first one fetches the panels of a
  // tile of positions to come, because blocks lie anywhere and the processor can't guess them.
  template <int NP, typename Prefetch, typename Run>
  void for_row_tiles(const Prefetch& next, bool has_next, Run run) const {
    const RowTiles tiles(rows_.count);
    for (int64_t t = 0; t < tiles.num_tiles; ++t) {
      with_rows(tiles.size(t), [&]<int MR>() {
        if constexpr (MR * NP <= KeyDot::kMaxAccumulators) {
          if (t == 0 && has_next) {
            run.template operator()<MR>(next, tiles.begin(t));
          } else {
            run.template operator()<MR>(NoPrefetch{}, tiles.begin(t));
          }
        }
      });
    }
  }

  template <int NP>
  void score_chunks(const Tile& tile, int64_t first) const {
    const std::byte* panels[NP];
    PrefetchOther<NP> ahead;
    for (int j = 0; j < NP; ++j) {
      panels[j] = tile.key_panel(first + j);
      ahead.panels[j] = tile.next_key_panel(first + j);
    }
    for_row_tiles<NP>(ahead, tile.fetches_keys(), [&]<int MR>(const auto& prefetch, int64_t row) {
      V sums[MR][NP];
      fill_tile(sums, V::zero());
      const KeyDot dot(head_dim_, 0);
      dot.template accumulate<MR, NP>(rows_.q + row * rows_.q_bytes, rows_.q_bytes, 0, head_dim_,
                                      panels, sums, prefetch);
      float* out = rows_.scores + row * kAttentionTile + first * kChunk;
      unrolled<MR>(TGI_UNROLLED(r) {
        unrolled<NP>(TGI_UNROLLED(j) {
          sums[r.value][j.value].store(out + r.value * kAttentionTile + j.value * kChunk);
        });
      });
    });
  }

  template <int NP>
  void weigh_panels(const Tile& tile, int64_t panel) const {
    for_row_tiles<NP>(
        PrefetchOther<NP>{}, tile.fetches_values(), [&]<int MR>(const auto& prefetch, int64_t row) {
          V sums[MR][NP];
          float* const out = rows_.sums + row * rows_.width + panel * 16;
          for (int r = 0; r < MR; ++r) {
            const V rescale = V::set1(rows_.rescale[row + r]);
            for (int j = 0; j < NP; ++j)
              sums[r][j] = V::load(out + r * rows_.width + j * 16) * rescale;
          }
          for (int64_t c = 0; c < tile.num_chunks(); ++c) {
            const std::byte* panels[NP];
            tile.value_panels(c, panel, panels);
            auto ahead = prefetch;
            if constexpr (!std::is_same_v<decltype(ahead), NoPrefetch>) {
              tile.next_value_panels(c, panel, ahead.panels);
            }
            const ValueDot dot(kChunk, 0);
            dot.template accumulate<MR, NP>(rows_.weights + row * kWeightBytes + c * kChunk * 4,
                                            kWeightBytes, 0, kChunk, panels, sums, ahead);
          }
          for (int r = 0; r < MR; ++r) {
            for (int j = 0; j < NP; ++j) sums[r][j].store(out + r * rows_.width + j * 16);
          }
        });
  }

  const int64_t head_dim_;
  const AttentionRows rows_;
};

}  // namespace tgi
