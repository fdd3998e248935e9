// What the threads of a CUDA block of the sample kernels find out together.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/kernels/reduce.cuh"
#include "cuda/kernels/sample_task.cuh"

namespace tgi::cuda {

inline constexpr int kSampleWarps = kSampleThreads / 32;

// Floats as integers of the same order; -0 counts as 0. No NaN.
__device__ __forceinline__ uint32_t order_key(float x) {
  const uint32_t bits = __float_as_uint(x + 0.0F);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
}
__device__ __forceinline__ float value_of_key(uint32_t key) {
  return __uint_as_float((key >> 31) != 0 ? key ^ 0x80000000U : ~key);
}

__device__ __forceinline__ PackedBest pack_best(float x, int32_t id) {
  return static_cast<Wide>(order_key(x)) << 32 | ~static_cast<uint32_t>(id);
}
__device__ __forceinline__ float value_of(PackedBest best) {
  return best == 0 ? -INFINITY : value_of_key(static_cast<uint32_t>(best >> 32));
}
__device__ __forceinline__ int32_t id_of(PackedBest best) {
  return static_cast<int32_t>(~static_cast<uint32_t>(best));
}

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Highest {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

template <typename T, typename Combine>
__device__ __forceinline__ T warp_combine(T x, Combine combine) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    x = combine(x, __shfl_xor_sync(kAllLanes, x, distance));
  }
  return x;
}

// Every thread gets it. All threads of the block call this.
template <typename T, typename Combine>
__device__ __forceinline__ T block_combine(T x, Combine combine) {
  __shared__ T partial[kSampleWarps];
  x = warp_combine(x, combine);
  __syncthreads();  // whoever was here before has read `partial`
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
  __syncthreads();
  T out = partial[0];
#pragma unroll
  for (int warp = 1; warp < kSampleWarps; ++warp) out = combine(out, partial[warp]);
  return out;
}

// Whether this block is the last of `num_blocks` to come here: then it sees what the others wrote.
__device__ __forceinline__ bool is_last_block(uint32_t* counter, uint32_t num_blocks) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(counter, 1U) == num_blocks - 1;
  __syncthreads();
  __threadfence();
  return is_last;
}

// Masses are integers, in units small enough that what is lost does not show: the sum does not
// depend on the order, and 2^18 ids of the highest weight 1 fit.
inline constexpr float kMassUnits = 0x1p45F;

__device__ __forceinline__ Wide mass_of(float value, float highest) {
  return static_cast<Wide>(expf(value - highest) * kMassUnits);
}
// The least mass that reaches this share of the total.
__device__ __forceinline__ Wide mass_share(float share, Wide total) {
  return static_cast<Wide>(ceil(static_cast<double>(share) * static_cast<double>(total)));
}

// A mass for each of kNumBins bins, in shared memory; the halves apart, for which there are
// instructions.
struct Bins {
  uint32_t low[kNumBins];
  uint32_t high[kNumBins];

  __device__ __forceinline__ void clear() {
    low[threadIdx.x] = 0;
    high[threadIdx.x] = 0;
    __syncthreads();
  }
  __device__ __forceinline__ void add(uint32_t bin, Wide mass) {
    const auto more = static_cast<uint32_t>(mass);
    auto carry = static_cast<uint32_t>(mass >> 32);
    if (more != 0) {
      const uint32_t before = atomicAdd(&low[bin], more);
      carry += before + more < before ? 1 : 0;
    }
    if (carry != 0) atomicAdd(&high[bin], carry);
  }
  // The mass of this thread's bin, when all have added.
  __device__ __forceinline__ Wide mine() const {
    return static_cast<Wide>(high[threadIdx.x]) << 32 | low[threadIdx.x];
  }
};

struct FoundBin {
  int32_t bin;  // -1: all are empty
  Wide before;  // mass of the bins before it
  Wide mass;    // its own
  Wide total;   // of all bins
};

// The first bin with which the sum of masses reaches `target`, if need be the last that is not
// empty; `mass` is that of the thread's bin. All threads get the same.
__device__ __forceinline__ FoundBin find_bin(Wide mass, Wide target) {
  __shared__ Wide of_warp[kSampleWarps];
  __shared__ FoundBin found;
  const unsigned lane = threadIdx.x % 32;
  Wide through = mass;
#pragma unroll
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const Wide below = __shfl_up_sync(kAllLanes, through, distance);
    if (lane >= distance) through += below;
  }
  __syncthreads();  // whoever was here before has read the shared memory
  if (lane == 31) of_warp[threadIdx.x / 32] = through;
  if (threadIdx.x == 0) found.bin = -1;
  __syncthreads();
  Wide total = 0;
  for (unsigned warp = 0; warp < kSampleWarps; ++warp) {
    if (warp < threadIdx.x / 32) through += of_warp[warp];
    total += of_warp[warp];
  }
  target = min(max(target, Wide{1}), total);
  if (through - mass < target && target <= through) {
    found.bin = static_cast<int32_t>(threadIdx.x);
    found.before = through - mass;
    found.mass = mass;
    found.total = total;
  }
  __syncthreads();
  return found;
}

}  // namespace tgi::cuda
