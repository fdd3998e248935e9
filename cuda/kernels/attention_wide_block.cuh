// A part of attention_wide.cu: what a block does with its rows of (query, head) of one kv head.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/kernels/attention_tiles.cuh"

namespace tgi::cuda {

inline constexpr int kWideTokens = 32;  // of a tile
inline constexpr int kWideThreads = 256;
inline constexpr int kWideWarps = kWideThreads / 32;
inline constexpr int kWidePadding =
    8;  // elements after a row, so that ldmatrix meets no bank twice
inline constexpr int kWideWeightStride = kWideTokens + kWidePadding;
inline constexpr int kWideScoreStride = kWideTokens + 4;
inline constexpr int kWideColumnTiles =
    kMaxAttentionDim / 8 / kWideWarps;  // of a warp: mma tiles of 8 columns

// Queries | keys | values | weights | scores of both halves of the columns | rescale, multipliers.
template <int kTiles>
struct WideLayout {
  static constexpr int kRows = 16 * kTiles;
  int32_t row_stride;                                                  // elements
  int32_t keys_at, values_at, weights_at, scores_at, states_at, size;  // bytes

  __host__ __device__ explicit constexpr WideLayout(int32_t head_dim)
      : row_stride(head_dim + kWidePadding),
        keys_at(kRows * row_stride * 2),
        values_at(keys_at + kWideTokens * row_stride * 2),
        weights_at(values_at + kWideTokens * row_stride * 2),
        scores_at(weights_at + kRows * kWideWeightStride * 2),
        states_at(scores_at + 2 * kRows * kWideScoreStride * 4),
        size(states_at + 2 * kRows * 4) {}
};

// Blocks that share the rows of one (sequence, kv head), or of one (tile of queries, kv head).
__host__ __device__ constexpr int32_t pieces_of(int32_t num_rows, int32_t rows) {
  return (num_rows + rows - 1) / rows;
}

struct WideParams {
  AttentionParams attention;
  int32_t num_splits;  // of sequences with one query; 0: the plan's tiles of queries
};

// What a block computes: rows [first_row, first_row + num_rows) of (query, head), head by head.
struct WideRows {
  SequenceRows sequence;
  int32_t first_query;  // of the sequence's rows of this step
  int32_t kv_head;
  int32_t first_row;
  int32_t num_rows;  // 0 or less: nothing
  int32_t split, num_splits;
};

template <int kTiles>
__device__ __forceinline__ WideRows wide_rows(const WideParams& params) {
  const AttentionParams& attention = params.attention;
  const bool is_tile = params.num_splits == 0;
  const int32_t most = (is_tile ? kPrefillQueryTile : 1) * attention.group;
  const int32_t pieces = pieces_of(most, 16 * kTiles);
  WideRows out;
  out.kv_head = static_cast<int32_t>(blockIdx.y) / pieces;
  out.first_row = static_cast<int32_t>(blockIdx.y) % pieces * 16 * kTiles;
  int32_t num_queries = 1;
  if (is_tile) {
    const PrefillTile tile = attention.plan.tiles[blockIdx.x];
    out.sequence = attention.plan.sequences[tile.sequence];
    out.first_query = tile.first_query;
    num_queries = min(kPrefillQueryTile, out.sequence.num_rows - tile.first_query);
    out.split = 0;
    out.num_splits = 1;
  } else {
    out.num_splits = params.num_splits;
    out.split = static_cast<int32_t>(blockIdx.x) % out.num_splits;
    out.sequence = attention.plan.sequences[static_cast<int32_t>(blockIdx.x) / out.num_splits];
    out.first_query = 0;
    if (out.sequence.num_rows != 1) num_queries = 0;  // has tiles
  }
  out.num_rows = min(num_queries * attention.group - out.first_row, 16 * kTiles);
  return out;
}

__host__ __device__ constexpr int64_t wide_partial_size(int32_t head_dim) {
  return int64_t{16} * head_dim + 2 * 16;
}

// Of a tile of 16 heads: their sums, then for each the largest score and the sum of weights.
__device__ __forceinline__ float* partial_at(const WideParams& params,
                                             int64_t sequence,
                                             int32_t piece,
                                             int32_t split) {
  const int32_t pieces = params.attention.num_kv_heads * pieces_of(params.attention.group, 16);
  return params.attention.partials + ((sequence * pieces + piece) * params.num_splits + split) *
                                         wide_partial_size(params.attention.head_dim);
}

template <typename T, typename C, int kTiles>
class WideBlock {
  using Layout = WideLayout<kTiles>;
  static constexpr int kOwnRows = Layout::kRows / kWideWarps;  // of a warp, while it weighs

 public:
  __device__ __forceinline__ WideBlock(const WideParams& given, const WideRows& rows)
      : given_(given),
        params_(given.attention),
        rows_(rows),
        shared_(params_.head_dim),
        lane_(static_cast<int>(threadIdx.x % 32)),
        warp_(static_cast<int>(threadIdx.x / 32)),
        first_position_(rows.sequence.context_len - rows.sequence.num_rows + rows.first_query) {
    const int32_t last = position_of(rows.num_rows - 1);
    context_ = context_rows(params_, rows.sequence, rows.kv_head, last + 1);
    const int32_t first_tile = first_seen_of(position_of(0)) / kWideTokens;
    const int32_t num_tiles = last / kWideTokens + 1 - first_tile;
    const int32_t each = (num_tiles + rows.num_splits - 1) / rows.num_splits;
    begin_ = first_tile + rows.split * each;
    end_ = min(begin_ + each, first_tile + num_tiles);
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) {
      largest_[i] = kMinusInfinity;
      sum_[i] = 0.0F;
    }
#pragma unroll
    for (int i = 0; i < kTiles * kWideColumnTiles * 4; ++i) {
      values_[i / (kWideColumnTiles * 4)][i / 4 % kWideColumnTiles][i % 4] = 0.0F;
    }
  }

  __device__ __forceinline__ void run() {
    load_queries();
    load(begin_, params_.cache.keys, keys());
    load(begin_, params_.cache.values, values());
    const ScoreScale scale = with_key_scale<C>(params_, rows_.kv_head);
    for (int32_t tile = begin_; tile < end_; ++tile) {
      cp_async_wait<1>();
      __syncthreads();  // the keys are there
      score();
      __syncthreads();  // all scores are, and nobody reads the keys any more
      load(tile + 1, params_.cache.keys, keys());
      weigh(tile, scale);
      cp_async_wait<1>();
      __syncthreads();  // weights and values are there
      sum_values();
      __syncthreads();  // nobody reads the values any more
      load(tile + 1, params_.cache.values, values());
    }
    cp_async_wait<0>();
    write();
  }

 private:
  __device__ __forceinline__ T* queries() const {
    return reinterpret_cast<T*>(dynamic_shared());
  }
  __device__ __forceinline__ T* keys() const {
    return reinterpret_cast<T*>(dynamic_shared() + shared_.keys_at);
  }
  __device__ __forceinline__ T* values() const {
    return reinterpret_cast<T*>(dynamic_shared() + shared_.values_at);
  }
  __device__ __forceinline__ T* weights() const {
    return reinterpret_cast<T*>(dynamic_shared() + shared_.weights_at);
  }
  __device__ __forceinline__ float* scores(int half) const {
    return reinterpret_cast<float*>(dynamic_shared() + shared_.scores_at) +
           half * Layout::kRows * kWideScoreStride;
  }
  __device__ __forceinline__ float* rescale() const {
    return reinterpret_cast<float*>(dynamic_shared() + shared_.states_at);
  }
  // What a row's sums are multiplied by in the end.
  __device__ __forceinline__ float* multipliers() const {
    return rescale() + Layout::kRows;
  }

  __device__ __forceinline__ int32_t query_of(int row) const {
    return (rows_.first_row + row) / params_.group;
  }
  __device__ __forceinline__ int32_t head_of(int row) const {
    return (rows_.first_row + row) % params_.group;
  }
  __device__ __forceinline__ int32_t position_of(int row) const {
    return first_position_ + query_of(row);
  }
  __device__ __forceinline__ int32_t first_seen_of(int32_t position) const {
    return first_seen(position, params_.sliding_window, params_.attention_chunk);
  }
  // Of q or out, where the row's head begins.
  __device__ __forceinline__ int64_t place_of(int row, int64_t stride) const {
    const int64_t token = rows_.sequence.first_row + rows_.first_query + query_of(row);
    const int64_t head = int64_t{rows_.kv_head} * params_.group + head_of(row);
    return token * stride + head * params_.head_dim;
  }

  // With the first keys in one group of copies. Rows that are not there are zeros.
  __device__ __forceinline__ void load_queries() const {
    const T* const q = static_cast<const T*>(params_.q);
    for (int row = warp_; row < Layout::kRows; row += kWideWarps) {
      const bool is_there = row < rows_.num_rows;
      const T* const from = is_there ? q + place_of(row, params_.q_stride) : q;
      T* const to = queries() + row * shared_.row_stride;
      for (int at = lane_ * 8; at < params_.head_dim; at += 32 * 8) {
        cp_async_16(to + at, from + (is_there ? at : 0), is_there);
      }
    }
  }

  // Starts the copy of a tile's rows, if there is such a tile; one group of copies either way.
  // Tokens past the last are zeros: what lies there may be NaN.
  __device__ __forceinline__ void load(int32_t tile, const void* cache, T* to) const {
    for (int i = warp_; i < kWideTokens && tile < end_; i += kWideWarps) {
      const int32_t token = tile * kWideTokens + i;
      const bool is_there = token < context_.end;
      const C* const from =
          static_cast<const C*>(cache) + int64_t{context_.row_of(token)} * params_.head_dim;
      T* const row = to + i * shared_.row_stride;
      if constexpr (sizeof(C) == sizeof(T)) {
        for (int at = lane_ * 8; at < params_.head_dim; at += 32 * 8) {
          cp_async_16(row + at, from + at, is_there);
        }
      } else {
        for (int at = lane_ * 16; at < params_.head_dim; at += 32 * 16) {
          convert(from + at, is_there, row + at);
        }
      }
    }
    cp_async_commit();
  }

  // 16 neighbours of an f8 cache.
  __device__ __forceinline__ static void convert(const C* from, bool is_there, T* to) {
    Vector<uint32_t, 4> stored = {};
    if (is_there) stored = cuda::load<uint32_t, 4>(reinterpret_cast<const uint32_t*>(from));
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Vector<uint32_t, 4> out;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        out.at[2 * j] = pair_of_f8<T, 0, 1>(stored.at[2 * half + j]);
        out.at[2 * j + 1] = pair_of_f8<T, 2, 3>(stored.at[2 * half + j]);
      }
      store(reinterpret_cast<uint32_t*>(to + 8 * half), out);
    }
  }

  __device__ __forceinline__ void score() const {
    const int num_steps = params_.head_dim / 16;
    const int first_half = (num_steps / 2 + 1) / 2 * 2;  // steps come in pairs
    const int half = warp_ / 4;
    const int end = half == 0 ? first_half : num_steps;
    const T* const q = queries() + lane_ % 16 * shared_.row_stride + lane_ / 16 * 8;
    const T* const k = keys() + (warp_ % 4 * 8 + lane_ % 8) * shared_.row_stride + lane_ / 8 * 8;
    float sums[kTiles][4] = {};
    for (int step = half == 0 ? 0 : first_half; step < end; step += 2) {
      uint32_t from_k[4];
      ldmatrix_x4(from_k, k + step * 16);
#pragma unroll
      for (int next = 0; next < 2; ++next) {
        if (step + next == end) break;
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          uint32_t from_q[4];
          ldmatrix_x4(from_q, q + tile * 16 * shared_.row_stride + (step + next) * 16);
          mma_16x8x16<T>(sums[tile], from_q, {from_k[2 * next], from_k[2 * next + 1]});
        }
      }
    }
    float* const to = scores(half) + lane_ / 4 * kWideScoreStride + warp_ % 4 * 8 + lane_ % 4 * 2;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        to[(tile * 16 + i / 2 * 8) * kWideScoreStride + i % 2] = sums[tile][i];
      }
    }
  }

  // The score in units of log2.
  __device__ __forceinline__ float scaled(const ScoreScale& scale,
                                          float x,
                                          int row,
                                          int32_t distance) const {
    float out = scale.cap_log2 == 0.0F ? x * scale.multiplier : softcapped(scale, x);
    if (scale.has_alibi) {
      const float slope = params_.alibi_slopes[rows_.kv_head * params_.group + head_of(row)];
      out = fmaf(slope * kLog2E, static_cast<float>(distance), out);
    }
    return out;
  }

  // Each warp has every eighth row, each lane a token.
  __device__ __forceinline__ void weigh(int32_t tile, const ScoreScale& scale) {
    const int32_t token = tile * kWideTokens + lane_;
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) {
      const int row = warp_ + kWideWarps * i;
      const int32_t position = position_of(row);
      const int at = row * kWideScoreStride + lane_;
      const bool is_seen =
          row < rows_.num_rows && token <= position && token >= first_seen_of(position);
      const float score = is_seen
                              ? scaled(scale, scores(0)[at] + scores(1)[at], row, token - position)
                              : kMinusInfinity;
      const SoftmaxStep step = softmax_step(score, is_seen, largest_[i], sum_[i]);
      weights()[row * kWideWeightStride + lane_] = from_float<T>(step.weight);
      if (lane_ == 0) rescale()[row] = step.factor;
    }
  }

  __device__ __forceinline__ void sum_values() {
    uint32_t from_weights[kTiles][2][4];
    float factors[kTiles][2];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const T* const p = weights() + (tile * 16 + lane_ % 16) * kWideWeightStride + lane_ / 16 * 8;
      ldmatrix_x4(from_weights[tile][0], p);
      ldmatrix_x4(from_weights[tile][1], p + 16);
      factors[tile][0] = rescale()[tile * 16 + lane_ / 4];
      factors[tile][1] = rescale()[tile * 16 + lane_ / 4 + 8];
    }
    const T* const v = values() + lane_ * shared_.row_stride;
#pragma unroll
    for (int i = 0; i < kWideColumnTiles; ++i) {
      const int column = (i * kWideWarps + warp_) * 8;
      if (column >= params_.head_dim) break;
      uint32_t from_v[4];
      ldmatrix_x4_transposed(from_v, v + column);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        float(&sums)[4] = values_[tile][i];
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[j] *= factors[tile][j / 2];
        mma_16x8x16<T>(sums, from_weights[tile][0], {from_v[0], from_v[1]});
        mma_16x8x16<T>(sums, from_weights[tile][1], {from_v[2], from_v[3]});
      }
    }
  }

  // The rows' results, or what merge_wide makes them of.
  __device__ __forceinline__ void write() const {
    float* const partial = rows_.num_splits == 1
                               ? nullptr
                               : partial_at(given_, blockIdx.x / rows_.num_splits,
                                            static_cast<int32_t>(blockIdx.y), rows_.split);
    const float of_values = value_scale<C>(params_, rows_.kv_head);
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) {
      const int row = warp_ + kWideWarps * i;
      if (lane_ != 0 || row >= rows_.num_rows) continue;
      if (partial != nullptr) {
        float* const state = partial + 16 * params_.head_dim + 2 * row;
        state[0] = largest_[i];
        state[1] = sum_[i];
        multipliers()[row] = of_values;
        continue;
      }
      const float sink = sink_of(params_, rows_.kv_head, head_of(row));
      const float largest = fmaxf(largest_[i], sink);
      const float own = weight_of(largest_[i], largest);
      multipliers()[row] =
          __fdividef(own * of_values, fmaf(own, sum_[i], weight_of(sink, largest)));
    }
    __syncthreads();
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = tile * 16 + lane_ / 4 + 8 * half;
        if (row >= rows_.num_rows) continue;
        const float multiplier = multipliers()[row];
        T* const to = static_cast<T*>(params_.out) +
                      (partial == nullptr ? place_of(row, params_.out_stride) : 0);
#pragma unroll
        for (int i = 0; i < kWideColumnTiles; ++i) {
          const int column = (i * kWideWarps + warp_) * 8 + lane_ % 4 * 2;
          if (column >= params_.head_dim) break;
          const float low = values_[tile][i][2 * half] * multiplier;
          const float high = values_[tile][i][2 * half + 1] * multiplier;
          if (partial == nullptr) {
            store(to + column, Vector<T, 2>{{from_float<T>(low), from_float<T>(high)}});
          } else {
            store(partial + row * params_.head_dim + column, Vector<float, 2>{{low, high}});
          }
        }
      }
    }
  }

  const WideParams& given_;
  const AttentionParams& params_;
  const WideRows rows_;
  const Layout shared_;
  const int lane_;
  const int warp_;
  const int32_t first_position_;  // of query 0
  ContextRows context_;
  int32_t begin_, end_;      // tiles
  float largest_[kOwnRows];  // score in units of log2
  float sum_[kOwnRows];      // of weights
  float values_[kTiles][kWideColumnTiles][4];
};

}  // namespace tgi::cuda
