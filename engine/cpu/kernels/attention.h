// Attention of some query rows over the paged cache, one tile of 64 positions after another with a
// running softmax (Milakov and Gimelshein, 2018; Dao et al., 2022). Tiles begin at multiples of 64
// from position 0 and a row takes part in each tile the same way whatever rows are beside it, so
// its bits do not depend on how the prompt was cut. Queries and softmax weights are rounded to what
// the cache's type is multiplied with.
#pragma once

#include <limits>
#include <type_traits>

#include "engine/cpu/kernels/cache_tile.h"
#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/kernels/tile.h"
#include "engine/cpu/kernels/vector_math.h"
#include "engine/cpu/panel_layout.h"

namespace tgi {

// KeyDot multiplies with panels of keys, ValueDot with the 16 positions of a panel of values.
template <typename KeyDot, typename ValueDot, DType kDType, PairOrder kOrder>
class AttentionRun {
  using V = typename KeyDot::V;

 public:
  explicit AttentionRun(const AttentionBlock& block)
      : block_(block),
        width_(round_up(block.value_dim, 16)),
        q_bytes_(round_up(block.head_dim, kPairBlock) * 4),
        q_(block.scratch),
        weights_(q_ + kMaxAttentionRows * q_bytes_),
        last_values_(weights_ + kMaxAttentionRows * kWeightBytes),
        sums_(reinterpret_cast<float*>(
            last_values_ + width_ * (block.values_are_taken() ? kAttentionTile : kChunk) * 4)),
        scores_(sums_ + kMaxAttentionRows * width_),
        totals_(scores_ + kMaxAttentionRows * kAttentionTile),
        scales_(totals_ + kMaxAttentionRows * 16),
        tile_(block,
              last_values_,
              scales_,
              reinterpret_cast<std::byte*>(scales_ + 2 * kAttentionTile)) {}

  void run() {
    begin();
    const int64_t last = last_visible(block_.num_rows - 1);
    const int64_t first_tile = first_visible(0) / kAttentionTile;
    for (int64_t tile = first_tile; tile <= last / kAttentionTile; ++tile) {
      const int64_t begin = tile * kAttentionTile;
      // Positions that this call may look at; what lies behind was never written.
      const int64_t count = last + 1 - begin < kAttentionTile ? last + 1 - begin : kAttentionTile;
      tile_.begin_keys(begin, count, last);
      score();
      for (int64_t r = 0; r < block_.num_rows; ++r) soften(r, begin, count);
      tile_.begin_values();
      weigh();
    }
    finish();
  }

 private:
  int64_t query(int64_t r) const { return (block_.first_row + r) / block_.group_size; }
  int64_t head(int64_t r) const { return (block_.first_row + r) % block_.group_size; }
  int64_t position(int64_t r) const { return block_.first_position + query(r); }
  int64_t first_visible(int64_t r) const {
    const int64_t p = position(r);
    const int64_t chunk =
        block_.attention_chunk == 0 ? 0 : p / block_.attention_chunk * block_.attention_chunk;
    const int64_t window = block_.sliding_window == 0 ? 0 : p - block_.sliding_window + 1;
    return window > chunk ? window : chunk;
  }
  int64_t last_visible(int64_t r) const {
    const int64_t p = position(r);
    if (block_.num_visible == 0) return p;
    const int64_t end = block_.num_visible - 1;
    const int64_t window = block_.sliding_window == 0 ? end : p + block_.sliding_window - 1;
    return window < end ? window : end;
  }
  void begin() {
    for (int64_t r = 0; r < block_.num_rows; ++r) {
      const float* from = block_.q + query(r) * block_.q_stride + head(r) * block_.head_dim;
      KeyDot::prepare(from, block_.head_dim, 0, q_ + r * q_bytes_);
      for (int64_t d = 0; d < width_; d += 16) V::zero().store(sums_ + r * width_ + d);
      V::zero().store(totals_ + r * 16);
      max_[r] = -std::numeric_limits<float>::infinity();
      if (block_.sinks != nullptr) {
        // As if a position without a value had been seen already: its weight is exp(0).
        max_[r] = block_.sinks[head(r)];
        totals_[r * 16] = 1.0F;
      }
    }
  }

  // Calls run with the number of panels that suits the tiles of rows: few rows need several panels
  // to keep the multipliers busy.
  template <typename Run>
  void with_panels(Run run) const {
    const RowTiles tiles(block_.num_rows);
    const int64_t highest = tiles.size(tiles.num_tiles - 1);
    if (highest == 1) return run.template operator()<KeyDot::panels_for(1)>();
    if (highest <= 3) return run.template operator()<KeyDot::panels_for(3)>();
    return run.template operator()<KeyDot::panels_for(kMaxTileRows)>();
  }

  // Calls run(prefetch, tile of rows) for all tiles of rows; the first one fetches the panels of
  // the next tile of positions, because blocks lie anywhere and the processor can't guess them.
  template <int NP, typename Prefetch, typename Run>
  void for_row_tiles(const Prefetch& next, bool has_next, Run run) const {
    const RowTiles tiles(block_.num_rows);
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

  // scores (num_rows, 64) = q k^T for the chunks that hold positions of the tile.
  void score() {
    const int64_t num_chunks = tile_.num_chunks();
    with_panels([&]<int NP>() {
      int64_t c = 0;
      for (; c + NP <= num_chunks; c += NP) score_chunks<NP>(c);
      for (; c < num_chunks; ++c) score_chunks<1>(c);
    });
  }

  template <int NP>
  void score_chunks(int64_t first) {
    const std::byte* panels[NP];
    PrefetchOther<NP> ahead;
    for (int j = 0; j < NP; ++j) {
      panels[j] = tile_.key_panel(first + j);
      ahead.panels[j] = tile_.next_key_panel(first + j);
    }
    for_row_tiles<NP>(ahead, tile_.fetches_keys(), [&]<int MR>(const auto& prefetch, int64_t row) {
      V sums[MR][NP];
      fill_tile(sums, V::zero());
      const KeyDot dot(block_.head_dim, 0);
      dot.template accumulate<MR, NP>(q_ + row * q_bytes_, q_bytes_, 0, block_.head_dim, panels,
                                      sums, prefetch);
      float* out = scores_ + row * kAttentionTile + first * kChunk;
      unrolled<MR>(TGI_UNROLLED(r) {
        unrolled<NP>(TGI_UNROLLED(j) {
          sums[r.value][j.value].store(out + r.value * kAttentionTile + j.value * kChunk);
        });
      });
    });
  }

  // Row r of the scores becomes weights exp(score - max), those of the chunks that hold the first
  // `count` positions prepared; rescale_[r] is what all before must be multiplied by.
  void soften(int64_t r, int64_t begin, int64_t count) {
    const float infinity = std::numeric_limits<float>::infinity();
    float* const row = scores_ + r * kAttentionTile;
    const int64_t num_seen = last_visible(r) + 1 - begin;  // of the tile; may be <= 0 or > 64
    const int64_t num_gone = first_visible(r) - begin;     // left the window; may be < 0
    const bool all_seen = num_seen >= kAttentionTile && num_gone <= 0;
    const V hidden = V::set1(-infinity);
    V x[kChunksPerTile];
    V highest = hidden;
    for (int c = 0; c < kChunksPerTile; ++c) {
      // Chunks that were never scored hold old numbers; no lane of them is seen.
      x[c] = V::load(row + c * kChunk) * score_scale(c);
      if (block_.distance_kinds != nullptr && num_seen > c * kChunk) {
        x[c] = V::fma(distance_products(r, begin + c * kChunk), V::set1(block_.scale), x[c]);
      }
      if (block_.softcap != 0.0F) {
        x[c] = V::set1(block_.softcap) * vector_tanh(x[c] / V::set1(block_.softcap));
      }
      if (block_.alibi_slopes != nullptr) x[c] = biased(x[c], r, begin + c * kChunk);
      if (block_.distance_bias != nullptr) x[c] = x[c] + distance_bias(r, begin + c * kChunk);
      if (!all_seen) {
        const auto seen = V::and_not(V::first_lanes(num_seen - c * kChunk),
                                     V::first_lanes(num_gone - c * kChunk));
        x[c] = V::select(seen, x[c], hidden);
      }
      highest = V::max(x[c], highest);
    }
    const float tile_max = highest.max_lane();
    const float new_max = tile_max > max_[r] ? tile_max : max_[r];
    const V base = V::set1(new_max == -infinity ? 0.0F : new_max);
    V total = V::zero();
    for (int c = 0; c < kChunksPerTile; ++c) {
      const V weight = weight_of(x[c] - base);
      (tile_.has_scales() ? weight * tile_.value_scales(c) : weight).store(row + c * kChunk);
      total = total + weight;
    }
    for (int64_t i = 0; i < count; i += kChunk) {
      ValueDot::prepare(row + i, kChunk, 0, weights_ + r * kWeightBytes + i * 4);
    }
    const bool keeps_max = new_max == max_[r] && new_max != -infinity;
    const V rescale = keeps_max ? V::set1(1.0F) : vector_exp(V::set1(max_[r]) - base);
    V::fma(V::load(totals_ + r * 16), rescale, total).store(totals_ + r * 16);
    rescale.store_first(rescale_ + r, 1);
    max_[r] = new_max;
  }

  V score_scale(int64_t chunk) const {
    const V scale = V::set1(block_.scale);
    return tile_.has_scales() ? tile_.key_scales(chunk) * scale : scale;
  }

  // Scores of 16 keys from position `first` on, less what ALiBi takes off for their distance.
  // Positions are exact in float: contexts are shorter than 2^24 tokens or the bias is beyond any
  // weight.
  V biased(V x, int64_t r, int64_t first) const {
    alignas(64) static constexpr float kLanes[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                     8, 9, 10, 11, 12, 13, 14, 15};
    const V ahead = V::set1(static_cast<float>(first - position(r))) + V::load(kLanes);
    const V distance = V::zero() - V::max(ahead, V::zero() - ahead);
    return V::fma(distance, V::set1(block_.alibi_slopes[head(r)]), x);
  }

  // Of 16 keys from position `first` on.
  V distance_bias(int64_t r, int64_t first) const {
    const int64_t reach = block_.bias_reach;
    const float* const table = block_.distance_bias + head(r) * block_.distance_bias_stride + reach;
    const int64_t distance = first - position(r);
    if (distance >= -reach && distance + kChunk - 1 <= reach) return V::load(table + distance);
    alignas(64) float values[kChunk];
    for (int64_t i = 0; i < kChunk; ++i) {
      const int64_t at = distance + i;
      values[i] = table[at < -reach ? -reach : at > reach ? reach : at];
    }
    return V::load(values);
  }

  // Of 16 keys from position `first` on; nothing is read for those behind the context.
  V distance_products(int64_t r, int64_t first) const {
    alignas(64) float values[kChunk] = {};
    const int64_t count = block_.num_visible - first < kChunk ? block_.num_visible - first : kChunk;
    const int32_t* const kinds = block_.distance_kinds + (first - position(r));
    if (block_.query_products != nullptr) {
      const float* const of_query = block_.query_products + query(r) * block_.query_products_stride;
      for (int64_t i = 0; i < count; ++i) values[i] = of_query[kinds[i]];
    }
    if (block_.key_products != nullptr) {
      const float* of_key = block_.key_products + first * block_.key_products_stride;
      for (int64_t i = 0; i < count; ++i, of_key += block_.key_products_stride) {
        values[i] += of_key[kinds[i]];
      }
    }
    return V::load(values);
  }

  static V weight_of(V x) {
    if constexpr (kDType == DType::kBF16) return vector_exp_coarse(x);
    return vector_exp(x);
  }

  // sums (num_rows, value_dim) = sums * rescale + weights v.
  void weigh() {
    const int64_t num_panels = width_ / 16;
    with_panels([&]<int NP>() {
      int64_t panel = 0;
      for (; panel + NP <= num_panels; panel += NP) weigh_panels<NP>(panel);
      for (; panel < num_panels; ++panel) weigh_panels<1>(panel);
    });
  }

  template <int NP>
  void weigh_panels(int64_t panel) {
    for_row_tiles<NP>(PrefetchOther<NP>{}, tile_.fetches_values(),
                      [&]<int MR>(const auto& prefetch, int64_t row) {
                        V sums[MR][NP];
                        float* const out = sums_ + row * width_ + panel * 16;
                        for (int r = 0; r < MR; ++r) {
                          const V rescale = V::set1(rescale_[row + r]);
                          for (int j = 0; j < NP; ++j)
                            sums[r][j] = V::load(out + r * width_ + j * 16) * rescale;
                        }
                        for (int64_t c = 0; c < tile_.num_chunks(); ++c) {
                          const std::byte* panels[NP];
                          tile_.value_panels(c, panel, panels);
                          auto ahead = prefetch;
                          if constexpr (!std::is_same_v<decltype(ahead), NoPrefetch>) {
                            tile_.next_value_panels(c, panel, ahead.panels);
                          }
                          const ValueDot dot(kChunk, 0);
                          dot.template accumulate<MR, NP>(
                              weights_ + row * kWeightBytes + c * kChunk * 4, kWeightBytes, 0,
                              kChunk, panels, sums, ahead);
                        }
                        for (int r = 0; r < MR; ++r) {
                          for (int j = 0; j < NP; ++j) sums[r][j].store(out + r * width_ + j * 16);
                        }
                      });
  }

  void finish() {
    for (int64_t r = 0; r < block_.num_rows; ++r) {
      const V total = V::set1(V::load(totals_ + r * 16).sum());
      float* to = block_.out + query(r) * block_.out_stride + head(r) * block_.value_dim;
      for (int64_t d = 0; d < block_.value_dim; d += 16) {
        // + 0 makes one zero of both, as the sign of a zero may depend on how many hidden positions
        // were weighed with 0.
        const V mean = V::load(sums_ + r * width_ + d) / total + V::zero();
        mean.store_first(to + d, block_.value_dim - d);
      }
    }
  }

  static constexpr int64_t kWeightBytes = kAttentionTile * 4;

  const AttentionBlock& block_;
  const int64_t width_;       // value_dim rounded up to 16
  const int64_t q_bytes_;     // of a prepared row
  std::byte* const q_;        // (num_rows, q_bytes)
  std::byte* const weights_;  // (num_rows, kWeightBytes)
  // (width / 16 panels) of the last chunk, or for each of the tile where values are taken out of
  // keys or codes
  std::byte* const last_values_;
  float* const sums_;    // (num_rows, width)
  float* const scores_;  // (num_rows, 64)
  float* const totals_;  // (num_rows, 16)
  float* const scales_;  // (2, 64), of codes
  CacheTile<V, kDType, kOrder> tile_;
  float max_[kMaxAttentionRows];
  float rescale_[kMaxAttentionRows];
};

template <typename KeyDot, typename ValueDot, DType kDType, PairOrder kOrder = PairOrder::kAdjacent>
void attention_block(const AttentionBlock& block) {
  AttentionRun<KeyDot, ValueDot, kDType, kOrder>(block).run();
}

}  // namespace tgi
