// Attention of some query rows over the paged cache, one tile of 64 positions after another with a
// running softmax (Milakov and Gimelshein, 2018; Dao et al., 2022). Tiles begin at multiples of 64
// from position 0 and a row takes part in each tile the same way whatever rows are beside it, so
// its bits do not depend on how the prompt was cut. Queries and softmax weights are rounded to what
// the cache's type is multiplied with.
#pragma once

#include <limits>

#include "engine/cpu/kernels/attention_products.h"
#include "engine/cpu/kernels/cache_tile.h"
#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/kernels/unrolled.h"
#include "engine/cpu/kernels/vector_math.h"
#include "engine/cpu/panel_layout.h"

namespace tgi {

template <typename Products>
class AttentionRun {
  using V = typename Products::V;
  using Tile = typename Products::Tile;
  static constexpr bool kIsCoarse = Tile::kType == DType::kBF16;
  static constexpr float kToExponent = kIsCoarse ? 1.44269504F : 1.0F;  // of a score

 public:
  explicit AttentionRun(const AttentionBlock& block)
      : block_(block),
        rows_(lay_out(block, rescale_)),
        totals_(rows_.scores + kMaxAttentionRows * kAttentionTile),
        tile_(block,
              last_values(rows_),
              scales(),
              reinterpret_cast<std::byte*>(scales() + 2 * kAttentionTile)),
        products_(block, rows_),
        is_plain_(block.scale > 0.0F && !tile_.has_scales() && block.softcap == 0.0F &&
                  block.alibi_slopes == nullptr && block.distance_bias == nullptr &&
                  block.distance_kinds == nullptr),
        to_exponent_((is_plain_ ? block.scale : 1.0F) * kToExponent) {}

  void run() {
    begin();
    const int64_t last = last_[rows_.count - 1];
    const int64_t first_tile = first_[0] / kAttentionTile;
    for (int64_t tile = first_tile; tile <= last / kAttentionTile; ++tile) {
      if (block_.chosen != nullptr && !is_chosen(tile)) continue;
      const int64_t begin = tile * kAttentionTile;
      // Positions that this call may look at; what lies behind was never written.
      const int64_t count = last + 1 - begin < kAttentionTile ? last + 1 - begin : kAttentionTile;
      tile_.begin_keys(begin, count, last);
      for (AttentionPass pass = pass_of(0); pass.count > 0;
           pass = pass_of(pass.first + pass.count)) {
        products_.score(tile_, pass);
        soften(pass, begin);
        if (pass.first == 0) tile_.begin_values();
        products_.weigh(tile_, pass);
      }
    }
    finish();
  }

 private:
  AttentionPass pass_of(int64_t first) const {
    const int64_t most = products_.rows_at_once();
    const int64_t left = rows_.count - first;
    return {.first = first, .count = left < most ? left : most};
  }
  int64_t query(int64_t r) const { return (block_.first_row + r) / block_.group_size; }
  int64_t head(int64_t r) const { return (block_.first_row + r) % block_.group_size; }
  int64_t position(int64_t r) const { return block_.first_position + query(r); }
  int64_t first_visible(int64_t r) const {
    if (block_.gathered != nullptr) return 0;
    const int64_t p = position(r);
    const int64_t chunk =
        block_.attention_chunk == 0 ? 0 : p / block_.attention_chunk * block_.attention_chunk;
    const int64_t window = block_.sliding_window == 0 ? 0 : p - block_.sliding_window + 1;
    return window > chunk ? window : chunk;
  }
  const uint64_t* chosen(int64_t r) const {
    const int64_t choice = (block_.first_head + head(r)) / block_.heads_per_choice;
    return block_.chosen + (query(r) * block_.num_choices + choice) * block_.chosen_words;
  }
  // By some row. Others see nothing of the tile and get no bits from it.
  bool is_chosen(int64_t tile) const {
    for (int64_t r = 0; r < block_.num_rows; ++r) {
      if (chosen(r)[tile] != 0) return true;
    }
    return false;
  }
  int64_t last_visible(int64_t r) const {
    if (block_.gathered != nullptr) return block_.num_gathered - 1;
    const int64_t p = position(r);
    if (block_.num_visible == 0) return p;
    const int64_t end = block_.num_visible - 1;
    const int64_t window = block_.sliding_window == 0 ? end : p + block_.sliding_window - 1;
    return window < end ? window : end;
  }
  void begin() {
    for (int64_t r = 0; r < block_.num_rows; ++r) {
      const float* from = block_.q + query(r) * block_.q_stride + head(r) * block_.head_dim;
      products_.prepare_query(from, r);
      first_[r] = first_visible(r);
      last_[r] = last_visible(r);
      float* const sums = rows_.sums + r * rows_.width;
      for (int64_t d = 0; d < rows_.width; d += 16) V::zero().store(sums + d);
      V::zero().store(totals_ + r * 16);
      max_[r] = -std::numeric_limits<float>::infinity();
      if (block_.sinks != nullptr) {
        // As if a position without a value had been seen already: its weight is exp(0).
        max_[r] = block_.sinks[head(r)] * kToExponent;
        totals_[r * 16] = 1.0F;
      }
    }
  }

  // Scores become weights exp(score - max), prepared; rescale_ is what all before must be
  // multiplied by. `begin`: of the tile. First the rows' highest scores, then all weights: one row
  // after the other would wait for each.
  void soften(const AttentionPass& pass, int64_t begin) {
    const bool all_seen = block_.chosen == nullptr &&
                          last_[pass.first] + 1 - begin >= kAttentionTile &&
                          first_[pass.first + pass.count - 1] <= begin;
    if (is_plain_ && all_seen) return soften_rows<true>(pass, begin);
    soften_rows<false>(pass, begin);
  }

  // Plain: products are the scores but for the scale, and all are seen.
  template <bool kIsPlain>
  void soften_rows(const AttentionPass& pass, int64_t begin) {
    float* const scores = rows_.scores;
    alignas(64) float highest[kMaxAttentionRows];
    const V to_exponent = V::set1(to_exponent_);
    for (int64_t i = 0; i < pass.count; ++i) {
      float* const row = scores + i * kAttentionTile;
      if constexpr (!kIsPlain) adjust(pass.first + i, begin, row);
      V high = V::set1(-std::numeric_limits<float>::infinity());
      unrolled<kChunksPerTile>(
          TGI_UNROLLED(c) { high = V::max(V::load(row + c.value * kChunk), high); });
      highest[i] = high.max_lane();
    }
    alignas(64) float base[kMaxAttentionRows];
    for (int64_t i = 0; i < pass.count; i += 16) raise_max(pass, i, highest + i, base + i);

    std::byte* weights = rows_.weights;
    float* total = totals_ + pass.first * 16;
    for (int64_t i = 0; i < pass.count; ++i, weights += kWeightBytes, total += 16) {
      const float* const row = scores + i * kAttentionTile;
      const V row_base = V::set1(base[i]);
      V sum = V::zero();
      unrolled<kChunksPerTile>(TGI_UNROLLED(c) {
        V weight = weight_of(V::load(row + c.value * kChunk), to_exponent, row_base);
        sum = sum + weight;
        if constexpr (!kIsPlain) {
          if (tile_.has_scales()) weight = weight * tile_.value_scales(c.value);
        }
        Products::prepare_weights(weight, c.value, weights);
      });
      V::fma(V::load(total), V::set1(rescale_[pass.first + i]), sum).store(total);
    }
  }

  // Of up to 16 rows of the pass, from row i on: `highest` of this tile; `base` is what comes off
  // their exponents.
  void raise_max(const AttentionPass& pass, int64_t i, const float* highest, float* base) {
    const V lowest = V::set1(-std::numeric_limits<float>::infinity());
    const int64_t r = pass.first + i;
    const V old_max = V::load_first(max_ + r, pass.count - i);
    const V highest_exponents = V::load_first(highest, pass.count - i) * V::set1(to_exponent_);
    const V new_max = V::max(highest_exponents, old_max);
    const V bases = V::select(V::equal(new_max, lowest), V::zero(), new_max);
    bases.store(base);
    new_max.store_first(max_ + r, pass.count - i);
    vector_exp((old_max - bases) * V::set1(1.0F / kToExponent))
        .store_first(rescale_ + r, pass.count - i);
  }

  // The products of row r become its scores. Chunks that were never multiplied hold old numbers; no
  // lane of them is seen.
  [[gnu::noinline]] void adjust(int64_t r, int64_t begin, float* row) const {
    const int64_t num_seen = last_[r] + 1 - begin;  // of the tile; may be <= 0 or > 64
    const int64_t num_gone = first_[r] - begin;     // left the window; may be < 0
    const V hidden = V::set1(-std::numeric_limits<float>::infinity());
    const uint64_t chosen_lanes =
        block_.chosen == nullptr ? ~uint64_t{0} : chosen(r)[begin / kAttentionTile];
    for (int c = 0; c < kChunksPerTile; ++c) {
      V x = V::load(row + c * kChunk);
      if (!is_plain_) x = x * score_scale(c);
      if (block_.distance_kinds != nullptr && num_seen > c * kChunk) {
        x = V::fma(distance_products(r, begin + c * kChunk), V::set1(block_.scale), x);
      }
      if (block_.softcap != 0.0F) {
        x = V::set1(block_.softcap) * vector_tanh(x / V::set1(block_.softcap));
      }
      if (block_.alibi_slopes != nullptr) x = biased(x, r, begin + c * kChunk);
      if (block_.distance_bias != nullptr) x = x + distance_bias(r, begin + c * kChunk);
      const auto seen =
          V::and_not(V::first_lanes(num_seen - c * kChunk), V::first_lanes(num_gone - c * kChunk));
      x = V::select(seen, x, hidden);
      if (block_.chosen != nullptr) {
        const auto lanes = V::lanes(static_cast<uint32_t>(chosen_lanes >> (c * kChunk)) & 0xFFFFU);
        x = V::select(lanes, x, hidden);
      }
      x.store(row + c * kChunk);
    }
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

  // exp of scores less the highest one: 2 to the power of exponents less `base`, or e.
  static V weight_of(const V& scores, const V& to_exponent, const V& base) {
    if constexpr (kIsCoarse) return vector_exp2_coarse(V::fma(scores, to_exponent, -base));
    return vector_exp(scores * to_exponent - base);
  }

  void finish() {
    for (int64_t r = 0; r < block_.num_rows; ++r) {
      const V total = V::set1(V::load(totals_ + r * 16).sum());
      float* to = block_.out + query(r) * block_.out_stride + head(r) * block_.value_dim;
      for (int64_t d = 0; d < block_.value_dim; d += 16) {
        // + 0 makes one zero of both, as the sign of a zero may depend on how many hidden positions
        // were weighed with 0.
        const V mean = V::load(rows_.sums + r * rows_.width + d) / total + V::zero();
        mean.store_first(to + d, block_.value_dim - d);
      }
    }
  }

  static AttentionRows lay_out(const AttentionBlock& block, float* rescale) {
    AttentionRows out{.count = block.num_rows,
                      .width = round_up(block.value_dim, 16),
                      .q_bytes = round_up(block.head_dim, kPairBlock) * 4,
                      .q = block.scratch,
                      .rescale = rescale};
    out.weights = out.q + kMaxAttentionRows * out.q_bytes;
    const int64_t positions = block.values_are_taken() ? kAttentionTile : kChunk;
    out.sums = reinterpret_cast<float*>(out.weights + kMaxAttentionRows * kWeightBytes +
                                        out.width * positions * 4);
    out.scores = out.sums + kMaxAttentionRows * out.width;
    return out;
  }
  // (width / 16 panels) of the last chunk, or for each of the tile where values are taken out of
  // keys or codes.
  static std::byte* last_values(const AttentionRows& rows) {
    return rows.weights + kMaxAttentionRows * kWeightBytes;
  }
  float* scales() const { return totals_ + kMaxAttentionRows * 16; }  // (2, 64), of codes

  const AttentionBlock& block_;
  int64_t first_[kMaxAttentionRows];  // the positions that a row sees
  int64_t last_[kMaxAttentionRows];
  float max_[kMaxAttentionRows];  // exponents
  float rescale_[kMaxAttentionRows];
  const AttentionRows rows_;
  float* const totals_;  // (num_rows, 16)
  Tile tile_;
  Products products_;
  const bool is_plain_;  // scores are products times the scale, which is left to the exponent
  const float to_exponent_;
};

template <typename Products>
void attention_block(const AttentionBlock& block) {
  AttentionRun<Products>(block).run();
}

template <typename Products>
constexpr void set_attention(KernelTable& table, PanelType type) {
  static_assert(Products::kSuitableRows <= kMaxAttentionRows);
  table.attention_rows[static_cast<size_t>(type)] = Products::kSuitableRows;
  table.attention[static_cast<size_t>(type)] = attention_block<Products>;
}

}  // namespace tgi
