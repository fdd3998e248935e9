// Sums over the threads of a CUDA block, in an order that depends on the number of threads alone.
#pragma once

#include "cuda/kernels/types.cuh"

namespace tgi::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffU;

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(kAllLanes, x, distance);
  }
  return x;
}

// Every thread gets the sum. `scratch` holds a float for each warp and may be used again after a
// __syncthreads.
__device__ __forceinline__ float block_sum(float x, float* scratch) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned num_warps = blockDim.x / 32;
  x = warp_sum(x);
  if (lane == 0) scratch[threadIdx.x / 32] = x;
  __syncthreads();
  return warp_sum(lane < num_warps ? scratch[lane] : 0.0F);
}

}  // namespace tgi::cuda
