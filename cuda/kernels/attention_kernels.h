// What attention.cc hands to the kernels of attention_decode.cu and attention_prefill.cu.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "cuda/kernels/attention.h"

namespace tgi::cuda {

// From the dot product of a query with a stored key to the score in units of log2: x * multiplier,
// or cap_log2 * tanh(x * multiplier / 2 * ln 2) with a softcap. The scale of the keys of an f8
// cache is multiplied onto `multiplier` in the kernel.
struct ScoreScale {
  float multiplier = 1.0F;
  float cap_log2 = 0.0F;   // 0: no softcap
  bool has_alibi = false;  // then slope * distance is added to what comes out
};

inline constexpr float kLog2E = 1.44269504F;

ScoreScale score_scale(const AttentionArgs& args);

struct AttentionParams {
  const void* q = nullptr;  // (num_tokens, num_heads * head_dim)
  int64_t q_stride = 0;     // elements, of a token
  void* out = nullptr;      // as q
  int64_t out_stride = 0;
  LayerCache cache;
  const float* key_scales = nullptr;    // (optional) (num_kv_heads)
  const float* value_scales = nullptr;  // (optional) (num_kv_heads)
  const int32_t* block_tables = nullptr;
  int32_t max_blocks = 0;
  int32_t block_size = 0;
  int32_t num_kv_heads = 0;
  int32_t heads_of_item = 1;  // of the plan: kv heads
  int32_t group = 0;          // query heads of a kv head
  int32_t head_dim = 0;
  int32_t sliding_window = 0;           // 0: off
  int32_t attention_chunk = 0;          // 0: off
  const float* sinks = nullptr;         // (optional) (num_kv_heads * group)
  const float* alibi_slopes = nullptr;  // where score.has_alibi: (num_kv_heads * group)
  ScoreScale score;
  DeviceAttentionPlan plan;
  float* partials = nullptr;
};

// The size of a partial result: (group, head_dim) sums of values, not yet divided, then (group, 2)
// the largest score in units of log2 and the sum of weights relative to it. A multiple of 16 bytes.
__host__ __device__ constexpr int64_t partial_floats(int32_t group, int32_t head_dim) {
  return static_cast<int64_t>(group) * head_dim + (2 * group + 3) / 4 * 4;
}

// The first token of its context that a query sees.
__host__ __device__ constexpr int32_t first_seen(int32_t position, int32_t window, int32_t chunk) {
  const int32_t of_chunk = chunk > 0 ? position / chunk * chunk : 0;
  const int32_t of_window = window > 0 ? position - window + 1 : 0;
  return of_window > of_chunk ? of_window : of_chunk;
}

// The head dimensions that there are kernels for; others take the next, filled up with zeros.
template <typename Use>
void with_head_dim(int32_t head_dim, Use use) {
  if (head_dim <= 64) return use(std::integral_constant<int, 64>{});
  if (head_dim <= 96) return use(std::integral_constant<int, 96>{});
  if (head_dim <= 128) return use(std::integral_constant<int, 128>{});
  return use(std::integral_constant<int, 256>{});
}

void launch_attention_decode(cudaStream_t stream,
                             DType dtype,
                             bool cache_is_f8,
                             int32_t num_blocks,
                             const AttentionParams& params);
void prepare_attention_decode();
int64_t max_decode_shared_bytes();  // of a block

void launch_attention_merge(cudaStream_t stream,
                            DType dtype,
                            int32_t max_merges,
                            const AttentionParams& params);

void launch_attention_prefill(cudaStream_t stream,
                              DType dtype,
                              bool cache_is_f8,
                              int32_t num_tiles,
                              const AttentionParams& params);
void prepare_attention_prefill();

// What of a step attention_wide works on, beside the plan's sequences.
struct WideAttention {
  int32_t num_sequences = 0;  // of which those with one query are cut; 0: none is
  int32_t num_splits = 1;     // into so many pieces: wide_splits
  int32_t num_tiles = 0;      // of queries
  int64_t shared_bytes_of_multiprocessor = 0;
};
void launch_attention_wide(cudaStream_t stream,
                           DType dtype,
                           bool cache_is_f8,
                           const AttentionParams& attention,
                           const WideAttention& wide);
void prepare_attention_wide(int64_t shared_bytes_of_multiprocessor);

// Into how many pieces each context is cut, so that `num_blocks` CUDA blocks have work.
int32_t wide_splits(int32_t num_sequences, int32_t group, int32_t num_kv_heads, int32_t num_blocks);

}  // namespace tgi::cuda
