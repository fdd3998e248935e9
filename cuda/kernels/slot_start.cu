// See slot_start.h.
#include "cuda/kernels/slot_start.h"

#include <algorithm>

#include "cuda/kernels/ptx.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kThreads = 256;

// The grid strides.
unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>(std::clamp<int64_t>((count + kThreads - 1) / kThreads, 1, 256));
}

__global__ void clear_counts(uint16_t* counts, int32_t vocab_size) {
  wait_for_previous_kernel();
  launch_next_kernel();
  for (auto id = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x); id < vocab_size;
       id += static_cast<int32_t>(gridDim.x * blockDim.x)) {
    counts[id] = 0;
  }
}

// There are atomics for 16 bits, but none that saturates.
__device__ __forceinline__ void count_token(uint16_t* counts, int32_t id, bool in_output) {
  unsigned short* const at = counts + id;
  unsigned short seen = *at;
  for (;;) {
    const unsigned in_outputs = seen & kOutputCountMask;
    const unsigned more = in_output && in_outputs < kOutputCountMask ? 1 : 0;
    const auto next = static_cast<unsigned short>(kSeenToken | (in_outputs + more));
    if (next == seen) return;
    const unsigned short found = atomicCAS(at, seen, next);
    if (found == seen) return;
    seen = found;
  }
}

__global__ void count_tokens(
    uint16_t* counts, int32_t vocab_size, const int32_t* ids, int32_t num_ids, int32_t num_prompt) {
  wait_for_previous_kernel();
  launch_next_kernel();
  for (auto i = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x); i < num_ids;
       i += static_cast<int32_t>(gridDim.x * blockDim.x)) {
    const int32_t id = ids[i];
    if (id >= 0 && id < vocab_size) count_token(counts, id, i >= num_prompt);
  }
}

}  // namespace

void launch_count_tokens(cudaStream_t stream,
                         const SlotTables& slots,
                         int32_t slot,
                         const int32_t* ids,
                         int32_t num_ids,
                         int32_t num_prompt,
                         bool clear) {
  uint16_t* const counts = slots.token_counts + static_cast<int64_t>(slot) * slots.vocab_size;
  if (clear) {
    launch(stream,
           {.grid = dim3(blocks_for(slots.vocab_size)),
            .block = dim3(kThreads),
            .overlaps_previous = true},
           clear_counts, counts, slots.vocab_size);
  }
  if (num_ids <= 0) return;
  launch(stream,
         {.grid = dim3(blocks_for(num_ids)), .block = dim3(kThreads), .overlaps_previous = true},
         count_tokens, counts, slots.vocab_size, ids, num_ids, num_prompt);
}

}  // namespace tgi::cuda
