// The products of attention on the matrix unit, 16 query rows at a time. The same bits as
// VectorProducts of DotPairs: one instruction takes 32 columns of keys, or 16 positions of values.
#pragma once

#include "engine/cpu/kernels/amx_matmul.h"
#include "engine/cpu/kernels/amx_unit.h"
#include "engine/cpu/kernels/attention_products.h"
#include "engine/cpu/kernels/unrolled.h"

namespace tgi {

template <typename Vector, typename Unit>
class AmxProducts {
 public:
  using V = Vector;
  // Measured there: the nearest cache holds the next tile.
  using Tile = CacheTile<V, DType::kBF16, PairOrder::kAdjacent, 1>;
  static constexpr int64_t kSuitableRows = 64;
  static_assert(kSuitableRows % 16 == 0,
                "a last tile of rows that is not full stays in the workspace");

  AmxProducts(const AttentionBlock& block, const AttentionRows& rows)
      : head_dim_(block.head_dim),
        rows_(rows),
        tile_rows_(rows_of_tiles(rows.count)),
        unit_(TileConfig::of_attention(static_cast<int>(tile_rows_))) {}

  void prepare_query(const float* from, int64_t r) const {
    AmxBf16X<V>::prepare(from, head_dim_, 0, rows_.q + r * q_bytes());
  }
  [[gnu::always_inline]] static void prepare_weights(const V& weights,
                                                     int64_t chunk,
                                                     std::byte* to) {
    store_flushed_bf16(weights, to + chunk * kChunk * 2);
  }

  int64_t rows_at_once() const { return tile_rows_; }
  // The first rows fetch what the next tile has: blocks lie anywhere and the processor can't guess
  // them.
  void score(const Tile& tile, const AttentionPass& pass) {
    const bool fetches = pass.first == 0 && tile.fetches_keys();
    fetches ? score_rows<true>(tile, pass) : score_rows<false>(tile, pass);
  }
  void weigh(const Tile& tile, const AttentionPass& pass) {
    for (int64_t i = 0; i < pass.count; ++i) rescale(pass.first + i);
    const bool fetches = pass.first == 0 && tile.fetches_values();
    for (int64_t panel = 0; panel < rows_.width / 16; panel += kTiles) {
      fetches ? weigh_panels<true>(tile, pass, panel) : weigh_panels<false>(tile, pass, panel);
    }
  }

 private:
  static constexpr int kTiles = 4;  // of sums

  // Of a row as bf16: half of what there is room for.
  int64_t q_bytes() const { return rows_.q_bytes / 2; }
  // As even as can be: what a tile takes grows with its rows.
  static int64_t rows_of_tiles(int64_t count) {
    const int64_t num_tiles = (count + 15) / 16;
    return (count + num_tiles - 1) / num_tiles;
  }

  template <bool kFetches>
  void score_rows(const Tile& tile, const AttentionPass& pass) {
    const int64_t num_chunks = tile.num_chunks();
    const std::byte* const q = rows_.q + pass.first * q_bytes();
    unrolled_types<kTiles>(TGI_UNROLLED_TYPES(c) { unit_.template zero<c.value>(); });
    for (int64_t k = 0; k < head_dim_; k += kPairBlock) {
      unit_.template load<4>(q + k * 2, q_bytes());
      unrolled_types<kTiles>(TGI_UNROLLED_TYPES(c) {
        if (c.value < num_chunks) {
          unit_.template load<6>(tile.key_panel(c.value) + k * 32, 64);
          if constexpr (kFetches) fetch<16>(tile.next_key_panel(c.value) + k * 32);
          unit_.template dot_keys<c.value>();
        }
      });
    }
    unrolled_types<kTiles>(TGI_UNROLLED_TYPES(c) {
      if (c.value < num_chunks) {
        unit_.template store<c.value>(rows_.scores + c.value * kChunk, kAttentionTile * 4);
      }
    });
  }

  void rescale(int64_t r) const {
    if (rows_.rescale[r] == 1.0F) return;
    const V factor = V::set1(rows_.rescale[r]);
    float* const sums = rows_.sums + r * rows_.width;
    for (int64_t d = 0; d < rows_.width; d += 16) (V::load(sums + d) * factor).store(sums + d);
  }

  // Up to four panels from `first` on.
  template <bool kFetches>
  void weigh_panels(const Tile& tile, const AttentionPass& pass, int64_t first) {
    const int64_t left = rows_.width / 16 - first;
    const int64_t num_panels = left < kTiles ? left : kTiles;
    float* const sums = rows_.sums + pass.first * rows_.width + first * 16;
    unrolled_types<kTiles>(TGI_UNROLLED_TYPES(j) {
      if (j.value < num_panels) {
        unit_.template load<j.value>(sums + j.value * 16, rows_.width * 4);
      }
    });
    for (int64_t c = 0; c < tile.num_chunks(); ++c) {
      const std::byte* panels[kTiles];
      const std::byte* ahead[kTiles];
      tile.value_panels(c, first, panels);
      if constexpr (kFetches) tile.next_value_panels(c, first, ahead);
      unit_.template load<5>(rows_.weights + c * kChunk * 2, kWeightBytes);
      unrolled_types<kTiles>(TGI_UNROLLED_TYPES(j) {
        if (j.value < num_panels) {
          unit_.template load<7>(panels[j.value], 64);
          if constexpr (kFetches) fetch<8>(ahead[j.value]);
          unit_.template dot_values<j.value>();
        }
      });
    }
    unrolled_types<kTiles>(TGI_UNROLLED_TYPES(j) {
      if (j.value < num_panels) {
        unit_.template store<j.value>(sums + j.value * 16, rows_.width * 4);
      }
    });
  }

  template <int kLines>
  static void fetch(const std::byte* from) {
    for (int i = 0; i < kLines; ++i) __builtin_prefetch(from + i * 64);
  }

  const int64_t head_dim_;
  const AttentionRows rows_;
  const int64_t tile_rows_;
  Unit unit_;
};

}  // namespace tgi
