// Kernels that work on rows: the begin of a step, embedding, norms, activations, gathering.
// Launches only. `Element` is the activation type, bf16 or f16.
//
// Definitions: engine/device/backend.h. All sums are f32 in one fixed order that depends on the
// width alone.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/kernels/step.h"
#include "engine/device/backend.h"

namespace tgi::cuda {

struct BlockAppendRow {
  int32_t slot = 0;
  int32_t index = 0;
  int32_t block = 0;
  int32_t group = 0;
};

// A slot's first state; its rows of the block tables are filled with the spare block.
struct SlotStartRow {
  int32_t slot = 0;
  int32_t last_token = 0;
  int32_t adapter = 0;
  SlotSampling sampling;
};

// The rotary tables of a step: for each row of tokens and each rope, rotary_dim / 2 cosines, then
// as many sines.
struct RopeTable {
  int32_t first_column = 0;
  int32_t rotary_dim = 0;
  int32_t dynamic_original_positions = 0;
  float dynamic_factor = 1.0F;
  float base = 10000.0F;
  float attention_factor = 1.0F;
  bool interleaved = false;
  const float* inv_freq = nullptr;  // (rotary_dim / 2)
};

void launch_slot_starts(cudaStream_t stream,
                        const SlotTables& slots,
                        const SlotStartRow* starts,
                        int32_t count,
                        int32_t spare_block);
void launch_block_appends(cudaStream_t stream,
                          const SlotTables& slots,
                          const BlockAppendRow* appends,
                          int32_t count);

// token_ids[row] = the row's token, looked up in its slot where it is given so.
void launch_resolve_tokens(cudaStream_t stream,
                           const SlotTables& slots,
                           const TokenRow* rows,
                           int32_t num_rows,
                           int32_t* token_ids);
// table: (num_rows, stride)
void launch_cos_sin(cudaStream_t stream,
                    const RopeTable& rope,
                    const TokenRow* rows,
                    int32_t num_rows,
                    float* table,
                    int32_t stride);

struct EmbedLaunch {
  // (optional: what `out` holds) (vocab, stride), of the activation type
  const void* table = nullptr;
  int64_t stride = 0;
  const void* position_table = nullptr;  // (optional) (positions, position_stride)
  int64_t position_stride = 0;
  int32_t num_ids = 0;  // that the table has rows for; others take the first
  const int32_t* token_ids = nullptr;
  const TokenRow* rows = nullptr;
  float multiplier = 1.0F;
  Tensor out;
};
void launch_embed(cudaStream_t stream, const EmbedLaunch& launch);

void launch_norm(cudaStream_t stream, const NormArgs& args);
void launch_activation(cudaStream_t stream, const ActivationArgs& args);
// out += bias, for each row; bias: (cols), f32. `out` may be f32.
void launch_add_bias(cudaStream_t stream, const Tensor& out, const float* bias);
void launch_add(cudaStream_t stream, const AddArgs& args);
void launch_gather(cudaStream_t stream, const Tensor& x, const LogitRow* rows, const Tensor& out);
// out: (x.rows, x.cols), f32, rows so many floats apart
void launch_report_rows(cudaStream_t stream, const Tensor& x, float* out, int64_t out_stride);

// Heads of from_dim columns, side by side, to heads of to_dim columns: cut, or filled up with
// zeros.
void launch_copy_heads(
    cudaStream_t stream, const Tensor& from, int32_t from_dim, const Tensor& to, int32_t to_dim);

struct StoreKvLaunch {
  LayerCache cache;
  int32_t cache_head_dim = 0;  // at least head_dim; zeros past it
  DType cache_dtype = DType::kBF16;
  const float* key_scales = nullptr;  // (num_kv_heads) of an f8 cache
  const float* value_scales = nullptr;
  int32_t block_size = 16;
  const int32_t* block_tables = nullptr;
  int32_t max_blocks = 0;
  const TokenRow* rows = nullptr;
  const float* cos_sin = nullptr;  // (num_tokens, cos_sin_stride); null: no rotation
  int32_t cos_sin_stride = 0;
  RopeTable rope;
};
void launch_qk_norm_rope_store_kv(cudaStream_t stream,
                                  const QkvArgs& args,
                                  const StoreKvLaunch& launch);

// logits = softcap((logits + bias) * scale), in place; (rows, cols), f32. Not launched where it
// would change nothing.
struct LogitTransform {
  const float* bias = nullptr;
  float scale = 1.0F;
  float softcap = 0.0F;
};
void launch_logit_transform(cudaStream_t stream,
                            const Tensor& logits,
                            const LogitTransform& transform);

}  // namespace tgi::cuda
