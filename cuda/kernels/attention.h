// Attention over the paged cache. Launches only: no allocation, nothing that depends on host values
// that change between two replays, but the number of prefill tiles (steps with such are never
// captured).
//
// Definition: engine/device/backend.h, AttentionArgs. T of q and out is the activation type (bf16
// or f16); the cache is of the same type or f8 (converted in registers; per-head scales). Queries,
// keys, softmax weights and values meet in mma with f32 sums; the softmax is in f32 with exp2.
//
// Sources: Dao, "FlashAttention-2" (arXiv 2307.08691); Dao et al., "Flash-Decoding" (2023).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/attention_plan.h"
#include "cuda/kernels/step.h"
#include "engine/device/backend.h"

namespace tgi::cuda {

// The step's attention as it lies on the device.
struct DeviceAttentionPlan {
  const SequenceRows* sequences = nullptr;
  const DecodeItem* items = nullptr;
  const int32_t* block_begin = nullptr;
  const DecodeMerge* merges = nullptr;
  const int32_t* num_merges = nullptr;
  const PrefillTile* tiles = nullptr;
};

struct AttentionLaunch {
  LayerCache cache;
  DType cache_dtype = DType::kBF16;
  // (optional) (num_kv_heads) of an f8 cache: key = stored * scale. Others have none.
  const float* key_scales = nullptr;
  const float* value_scales = nullptr;    // (optional) as key_scales
  int32_t block_size = 16;                // a multiple of 8
  const int32_t* block_tables = nullptr;  // (num_slots + 1, max_blocks)
  int32_t max_blocks = 0;
  DeviceAttentionPlan plan;
  int32_t heads_of_item = 1;      // kv heads that an item of the plan, or a merge, stands for
  int32_t num_sequences = 0;      // of the step
  int32_t num_decode_blocks = 0;  // CUDA blocks of the decode grid; 0: the step has no decode rows
  int32_t max_merges = 0;         // grid of the merge kernel
  int32_t num_tiles = 0;          // of prefill; 0: the step has none
  float* partials = nullptr;      // attention_partial_floats or wide_partial_floats
  int64_t shared_bytes_of_multiprocessor = 0;
};

// CUDA blocks of the decode grid that are all at work at once: two on each multiprocessor whose
// shared memory holds two (sm_90), else one.
int32_t decode_grid_blocks(int32_t num_multiprocessors, int64_t shared_bytes_of_multiprocessor);

// Supported: head_dim a multiple of 16 up to kMaxAttentionDim; up to kMaxGroup query heads for a kv
// head. Throws kUnsupported.
inline constexpr int32_t kMaxGroup = 32;
inline constexpr int32_t kMaxNarrowDim = 256;     // of heads that a warp can hold
inline constexpr int32_t kMaxAttentionDim = 512;  // of the others: attention_wide.cu
void check_attention(int32_t head_dim, int32_t num_heads, int32_t num_kv_heads);

// The size of the workspace for so many partials.
int64_t attention_partial_floats(int32_t num_partials, int32_t group, int32_t head_dim);

// The same of heads wider than kMaxNarrowDim, for any number of rows and a decode grid of so many
// CUDA blocks.
int64_t wide_partial_floats(int32_t num_blocks, int32_t head_dim);

// Once per device, before the first launch or capture: allows the kernels their shared memory.
void prepare_attention_kernels(int64_t shared_bytes_of_multiprocessor);

// REQUIRES: args.scale > 0; q and out aligned to 16 bytes, their strides multiples of 8.
void launch_attention(cudaStream_t stream,
                      const AttentionArgs& args,
                      const AttentionLaunch& launch);

}  // namespace tgi::cuda
