// Random weights made where they are needed: for measuring a model whose files are not at hand.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "engine/tensor/weight.h"

namespace tgi::cuda {

// out: (part.rows, stride) of `dtype`, zeros past part.cols. The numbers are those of
// engine/tensor/random_weights.h, rounded to dtype. REQUIRES: part.random.
void launch_random_weights(
    cudaStream_t stream, const WeightPart& part, DType dtype, int64_t stride, void* out);

}  // namespace tgi::cuda
