// See rows.h: what a step does before its forward pass.
#include <cmath>

#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/rows.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kThreads = 128;

unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

__device__ int32_t* table_row(const SlotTables& slots, int32_t group, int32_t slot) {
  const int64_t row = static_cast<int64_t>(group) * (slots.num_slots + 1) + slot;
  return slots.block_tables + row * slots.max_blocks;
}

// One CUDA block a start.
__global__ void slot_starts(SlotTables slots, const SlotStartRow* starts, int32_t spare_block) {
  const SlotStartRow& start = starts[blockIdx.x];
  for (int32_t group = 0; group < slots.num_groups; ++group) {
    int32_t* const table = table_row(slots, group, start.slot);
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < slots.max_blocks;
         i += static_cast<int32_t>(blockDim.x)) {
      table[i] = spare_block;
    }
  }
  if (threadIdx.x == 0) {
    slots.last_tokens[start.slot] = start.last_token;
    slots.sampling[start.slot] = start.sampling;
    if (slots.adapters != nullptr) slots.adapters[start.slot] = start.adapter;
  }
}

__global__ void block_appends(SlotTables slots, const BlockAppendRow* appends, int32_t count) {
  const auto i = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const BlockAppendRow append = appends[i];
  table_row(slots, append.group, append.slot)[append.index] = append.block;
}

__global__ void resolve_tokens(SlotTables slots,
                               const TokenRow* rows,
                               int32_t num_rows,
                               int32_t* token_ids) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto i = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= num_rows) return;
  const int32_t id = rows[i].token_id;
  token_ids[i] = id >= 0 ? id : slots.last_tokens[-1 - id];
}

// Angles as the host's tables make them: float(p) * inv_freq in float, cosine and sine in double.
__global__ void cos_sin(
    RopeTable rope, const TokenRow* rows, int32_t num_rows, float* table, int32_t stride) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int32_t half = rope.rotary_dim / 2;
  const auto index = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  const int32_t row = index / half;
  const int32_t i = index % half;
  if (row >= num_rows) return;
  const int32_t position = rows[row].position;
  float inv_freq = rope.inv_freq[i];
  if (rope.dynamic_original_positions > 0 && position >= rope.dynamic_original_positions) {
    const double factor = rope.dynamic_factor;
    const double length = position + 1.0;
    const double grown = factor * length / rope.dynamic_original_positions - (factor - 1.0);
    const double dim = rope.rotary_dim;
    const double base = rope.base * pow(grown, dim / (dim - 2.0));
    inv_freq = static_cast<float>(1.0 / pow(base, 2.0 * i / rope.rotary_dim));
  }
  const float angle = static_cast<float>(position) * inv_freq;
  float* const out = table + static_cast<int64_t>(row) * stride + rope.first_column;
  out[i] = static_cast<float>(cos(static_cast<double>(angle))) * rope.attention_factor;
  out[half + i] = static_cast<float>(sin(static_cast<double>(angle))) * rope.attention_factor;
}

}  // namespace

void launch_slot_starts(cudaStream_t stream,
                        const SlotTables& slots,
                        const SlotStartRow* starts,
                        int32_t count,
                        int32_t spare_block) {
  if (count == 0) return;
  launch(stream, {.grid = dim3(static_cast<unsigned>(count)), .block = dim3(kThreads)}, slot_starts,
         slots, starts, spare_block);
}

void launch_block_appends(cudaStream_t stream,
                          const SlotTables& slots,
                          const BlockAppendRow* appends,
                          int32_t count) {
  if (count == 0) return;
  launch(stream, {.grid = dim3(blocks_for(count)), .block = dim3(kThreads)}, block_appends, slots,
         appends, count);
}

void launch_resolve_tokens(cudaStream_t stream,
                           const SlotTables& slots,
                           const TokenRow* rows,
                           int32_t num_rows,
                           int32_t* token_ids) {
  launch(stream, {.grid = dim3(blocks_for(num_rows)), .block = dim3(kThreads)}, resolve_tokens,
         slots, rows, num_rows, token_ids);
}

void launch_cos_sin(cudaStream_t stream,
                    const RopeTable& rope,
                    const TokenRow* rows,
                    int32_t num_rows,
                    float* table,
                    int32_t stride) {
  const int64_t count = int64_t{num_rows} * (rope.rotary_dim / 2);
  if (count == 0) return;
  launch(stream,
         {.grid = dim3(blocks_for(count)), .block = dim3(kThreads), .overlaps_previous = true},
         cos_sin, rope, rows, num_rows, table, stride);
}

}  // namespace tgi::cuda
