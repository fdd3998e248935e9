// What the penalties need to know of a sequence that takes a slot.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/kernels/step.h"

namespace tgi::cuda {

// Counts ids (on the device; the first num_prompt of them are of the prompt) in the slot's row of
// token_counts, which is cleared first when `clear`.
void launch_count_tokens(cudaStream_t stream,
                         const SlotTables& slots,
                         int32_t slot,
                         const int32_t* ids,
                         int32_t num_ids,
                         int32_t num_prompt,
                         bool clear);

}  // namespace tgi::cuda
