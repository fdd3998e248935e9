// log(1 + exp(x)): of steps, gates and the scores of a router.
#pragma once

#include "cuda/kernels/types.cuh"

namespace tgi::cuda {

// Exact where it is tiny; what is not a number stays so.
__device__ __forceinline__ float softplus(float x) {
  return x > 30.0F ? x : log1pf(expf(x));
}

}  // namespace tgi::cuda
