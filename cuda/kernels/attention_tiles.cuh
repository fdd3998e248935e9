// What the attention kernels share: rows of keys and values in shared memory, gathered through the
// block table; conversion of f8; the online softmax.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/kernels/attention_kernels.h"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/reduce.cuh"
#include "cuda/kernels/shared_rows.cuh"
#include "cuda/kernels/types.cuh"

namespace tgi::cuda {

inline constexpr float kMinusInfinity = -__builtin_huge_valf();

// The context of a sequence as one kv head sees it: where a token's row of the cache is.
struct ContextRows {
  const int32_t* table;  // blocks of the sequence
  int32_t block_size;
  int32_t block_rows;  // from one block to the next
  int32_t kv_head;
  int32_t end;  // tokens from here on are not there

  // In rows of head_dim elements from the start of the cache, of which there are fewer than 2^31
  // (KvCache).
  __device__ __forceinline__ int32_t row_of(int32_t token) const {
    if (token >= end) return 0;
    const int32_t block = table[token / block_size];
    return block * block_rows + kv_head * block_size + token % block_size;
  }
};

__device__ __forceinline__ ContextRows context_rows(const AttentionParams& params,
                                                    const SequenceRows& sequence,
                                                    int32_t kv_head,
                                                    int32_t end) {
  return {.table = params.block_tables + static_cast<int64_t>(sequence.slot) * params.max_blocks,
          .block_size = params.block_size,
          .block_rows = params.cache.block_rows,
          .kv_head = kv_head,
          .end = end};
}

// Starts the copy of kRows rows of the cache by kThreads threads (whole warps). Rows come in groups
// of 8 neighbours; lane l knows in `row_of_group` where group l % (kRows / 8) is. Rows from
// num_rows on and bytes from row_bytes on are zeros: a stale value may be NaN, which a weight of 0
// does not silence.
template <int kRows, int kRowBytes, int kThreads>
__device__ __forceinline__ void copy_rows(std::byte* shared,
                                          const void* cache,
                                          int32_t row_of_group,
                                          int thread,
                                          int num_rows,
                                          int row_bytes) {
  using Rows = SharedRows<kRowBytes>;
  constexpr int kCopies = kRows * Rows::kChunks / kThreads;
  static_assert(kCopies * kThreads == kRows * Rows::kChunks);
  // A thread keeps to its chunk, and no sum of its first row and `ahead` carries.
  constexpr bool kIsRegular = kThreads % Rows::kChunks == 0;
  const int thread_row = thread / Rows::kChunks;
  const int thread_chunk = thread % Rows::kChunks;
  const int thread_offset = Rows::offset(thread_row, thread_chunk);
#pragma unroll
  for (int i = 0; i < kCopies; ++i) {
    int offset, group, row, chunk;
    bool valid;
    if constexpr (kIsRegular) {
      const int ahead = i * (kThreads / Rows::kChunks);
      offset = Rows::ahead(thread_offset, ahead, 0);
      group = thread_row / 8 + ahead / 8;
      row = thread_row % 8 + ahead % 8;
      chunk = thread_chunk;
      valid = thread_row < num_rows - ahead;
    } else {
      const int index = thread + i * kThreads;
      chunk = index % Rows::kChunks;
      offset = Rows::offset(index / Rows::kChunks, chunk);
      group = index / Rows::kChunks / 8;
      row = index / Rows::kChunks % 8;
      valid = index / Rows::kChunks < num_rows;
    }
    valid = valid && chunk * 16 < row_bytes;
    const int32_t first = __shfl_sync(kAllLanes, row_of_group, group);
    const auto* const from = static_cast<const std::byte*>(cache) +
                             static_cast<int64_t>(first + row) * row_bytes + chunk * 16;
    cp_async_16(shared + offset, from, valid);
  }
}

__device__ __forceinline__ uint32_t multiply_pairs(bf16, uint32_t pair, uint32_t by) {
  const __nv_bfloat162 product = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&pair),
                                         *reinterpret_cast<const __nv_bfloat162*>(&by));
  return *reinterpret_cast<const uint32_t*>(&product);
}
__device__ __forceinline__ uint32_t multiply_pairs(f16, uint32_t pair, uint32_t by) {
  const __half2 product =
      __hmul2(*reinterpret_cast<const __half2*>(&pair), *reinterpret_cast<const __half2*>(&by));
  return *reinterpret_cast<const uint32_t*>(&product);
}

// Bytes kLow and kHigh of four f8, as a pair of T. Exact: the bits of an f8 moved to where T has
// them are the value times a power of two, subnormal ones too. (NaN, which store_kv writes only for
// NaN, becomes 480.)
template <typename T, int kLow, int kHigh>
__device__ __forceinline__ uint32_t pair_of_f8(uint32_t four) {
  constexpr unsigned kSelect = 4U | kLow << 4U | 4U << 8U | kHigh << 12U;  // byte 4 is a zero
  const uint32_t high_bytes = __byte_perm(four, 0, kSelect);
  const uint32_t sign = high_bytes & 0x80008000U;
  if constexpr (std::is_same_v<T, bf16>) {
    return multiply_pairs(T{}, sign | (high_bytes >> 4 & 0x07f007f0U), 0x7b807b80U);  // 2^120
  } else {
    return multiply_pairs(T{}, sign | (high_bytes >> 1 & 0x3f803f80U), 0x5c005c00U);  // 2^8
  }
}

// Only an f8 cache has scales.
template <typename C>
__device__ __forceinline__ ScoreScale with_key_scale(const AttentionParams& params,
                                                     int32_t kv_head) {
  ScoreScale out = params.score;
  if (sizeof(C) == 1 && params.key_scales != nullptr) out.multiplier *= params.key_scales[kv_head];
  return out;
}

template <typename C>
__device__ __forceinline__ float value_scale(const AttentionParams& params, int32_t kv_head) {
  return sizeof(C) == 1 && params.value_scales != nullptr ? params.value_scales[kv_head] : 1.0F;
}

// The score of a dot product, with a softcap in units of log2.
__device__ __forceinline__ float softcapped(const ScoreScale& scale, float x) {
  // tanh(y) = 1 - 2 / (e^2y + 1), and e^2y = 2^(x * multiplier)
  const float power = fast_exp2(x * scale.multiplier);
  return scale.cap_log2 * (1.0F - __fdividef(2.0F, power + 1.0F));
}

// After this (and add_alibi), scores are in units that `remaining_multiplier` takes to log2.
template <int kCount>
__device__ __forceinline__ void apply_softcap(const ScoreScale& scale, float (&scores)[kCount][4]) {
  if (scale.cap_log2 == 0.0F) return;
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      scores[n][j] = softcapped(scale, scores[n][j]);
    }
  }
}
__device__ __forceinline__ float remaining_multiplier(const ScoreScale& scale) {
  return scale.cap_log2 == 0.0F && !scale.has_alibi ? scale.multiplier : 1.0F;
}

// Scores of two rows of an accumulator of mma whose columns are neighbouring tokens, the lane's
// first of them `token`: the query of row g is `position[0]` of a head with `slope[0]`, that of row
// g + 8 the second of both. REQUIRES: scale.has_alibi, apply_softcap before.
template <int kCount>
__device__ __forceinline__ void add_alibi(const ScoreScale& scale,
                                          const float (&slope)[2],
                                          const int32_t (&position)[2],
                                          int32_t token,
                                          float (&scores)[kCount][4]) {
  const float to_log2 = scale.cap_log2 == 0.0F ? scale.multiplier : 1.0F;
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int32_t ahead = token + 8 * n + j % 2 - position[j / 2];
      scores[n][j] = fmaf(slope[j / 2] * kLog2E, static_cast<float>(ahead), scores[n][j] * to_log2);
    }
  }
}

// The softmax of two rows, g and g + 8 of an accumulator of mma (g = lane / 4). The four lanes of a
// row agree on `largest`, each has the sum of its own columns.
struct SoftmaxRows {
  float largest[2] = {kMinusInfinity, kMinusInfinity};  // score
  float sum[2] = {0.0F, 0.0F};                          // of weights
};

// Scores (kTiles neighbouring accumulators) to weights relative to the new largest score; what was
// summed before is to be multiplied by rescale. A row with nothing but masked scores (-infinity)
// stays exactly as it was. `has_upper`: false if rows g + 8 mean nothing.
template <int kTiles>
__device__ __forceinline__ void online_softmax(float multiplier,
                                               bool has_upper,
                                               float (&scores)[kTiles][4],
                                               SoftmaxRows& rows,
                                               float (&rescale)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (half == 1 && !has_upper) {
      rescale[1] = 1.0F;
      break;
    }
    float largest = rows.largest[half];
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      largest = fmaxf(largest, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
    }
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
    // All masked so far: any base will do that is not infinite.
    const float base = largest == kMinusInfinity ? 0.0F : largest * multiplier;
    rescale[half] = rows.largest[half] == largest
                        ? 1.0F
                        : fast_exp2(fmaf(rows.largest[half], multiplier, -base));
    rows.largest[half] = largest;
    float sum = 0.0F;
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int j = 2 * half; j < 2 * half + 2; ++j) {
        scores[n][j] = fast_exp2(fmaf(scores[n][j], multiplier, -base));
        sum += scores[n][j];
      }
    }
    rows.sum[half] = fmaf(rows.sum[half], rescale[half], sum);
  }
}

// The sum over the four lanes of a row.
__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}

template <int kCount>
__device__ __forceinline__ void rescale_rows(const float (&rescale)[2], float (&sums)[kCount][4]) {
  // The largest score seldom grows; multiplying by 1 would change nothing.
  if (!__any_sync(kAllLanes, rescale[0] != 1.0F || rescale[1] != 1.0F)) return;
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
#pragma unroll
    for (int j = 0; j < 4; ++j) sums[n][j] *= rescale[j / 2];
  }
}

// A warp's next tile of a row of the online softmax, each lane a token.
struct SoftmaxStep {
  float weight;  // of the lane's token
  float factor;  // that the sums so far are to be multiplied with
};

__device__ __forceinline__ SoftmaxStep softmax_step(float score,
                                                    bool is_seen,
                                                    float& largest_so_far,
                                                    float& sum) {
  float largest = fmaxf(largest_so_far, score);
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, lanes));
  }
  // All masked so far: any base will do that is not infinite.
  const float base = largest == kMinusInfinity ? 0.0F : largest;
  const float factor = largest_so_far == largest ? 1.0F : fast_exp2(largest_so_far - base);
  const float weight = is_seen ? fast_exp2(score - base) : 0.0F;
  largest_so_far = largest;
  sum = fmaf(sum, factor, warp_sum(weight));
  return {weight, factor};
}

// The softmax of a part of the context that is merged with others.
struct MergeState {
  float largest;  // score, in units of log2
  float sum;      // of weights
};

__device__ __forceinline__ float weight_of(float largest, float all_largest) {
  return largest == kMinusInfinity ? 0.0F : fast_exp2(largest - all_largest);
}

// The sink of a head of the kv head in units of log2; none is a score that weighs nothing. Whoever
// writes the output counts it, so that it is in the sum once, whatever the pieces.
__device__ __forceinline__ float sink_of(const AttentionParams& params, int32_t kv_head, int head) {
  if (params.sinks == nullptr) return kMinusInfinity;
  return params.sinks[static_cast<int64_t>(kv_head) * params.group + head] * kLog2E;
}

}  // namespace tgi::cuda
