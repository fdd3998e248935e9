#include "tests/cuda_emulation/sample_kernels.h"

#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/types.cuh"

namespace tgi::cuda_emulation_samples {
namespace {

using namespace tgi::cuda;

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, lanes));
  }
  return x;
}
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(0xffffffffu, x, lanes);
  return x;
}

constexpr int kRowThreads = 128;

__global__ void __launch_bounds__(kRowThreads)
    softmax_kernel(float* __restrict__ y, const float* __restrict__ x, int columns) {
  __shared__ float partial[kRowThreads / 32];
  const int row = blockIdx.x;
  const int warp = threadIdx.x / 32;
  x += static_cast<size_t>(row) * columns;
  y += static_cast<size_t>(row) * columns;
  float largest = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += kRowThreads) largest = fmaxf(largest, x[i]);
  largest = warp_max(largest);
  if (threadIdx.x % 32 == 0) partial[warp] = largest;
  __syncthreads();
  for (int i = 0; i < kRowThreads / 32; ++i) largest = fmaxf(largest, partial[i]);
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += kRowThreads) sum += __expf(x[i] - largest);
  sum = warp_sum(sum);
  __syncthreads();  // everybody has read the maxima
  if (threadIdx.x % 32 == 0) partial[warp] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int i = 0; i < kRowThreads / 32; ++i) sum += partial[i];
  for (int i = threadIdx.x; i < columns; i += kRowThreads) {
    y[i] = __fdividef(__expf(x[i] - largest), sum);
  }
}

// A block makes 64 x 64 of c, each of its 4 warps 16 rows; k goes by in stages of 32, two of them
// in shared memory. Rows there are 40 elements apart, so that ldmatrix meets no bank twice.
constexpr int kTile = 64;
constexpr int kDepth = 32;
constexpr int kStride = kDepth + 8;
constexpr int kStages = 2;

template <typename T>
__device__ __forceinline__ void load_stage(T* to_a, T* to_b, const T* a, const T* b, int k) {
  for (int i = threadIdx.x; i < kTile * kDepth / 8; i += 128) {
    const int row = i / (kDepth / 8);
    const int column = i % (kDepth / 8) * 8;
    cp_async_16(to_a + row * kStride + column, a + static_cast<size_t>(row) * k + column);
    cp_async_16(to_b + row * kStride + column, b + static_cast<size_t>(row) * k + column);
  }
  cp_async_commit();
}

template <typename T>
__global__ void __launch_bounds__(128) matmul_kernel(
    float* __restrict__ c, const T* __restrict__ a, const T* __restrict__ b, int n, int k) {
  T* const shared = reinterpret_cast<T*>(dynamic_shared());
  constexpr int kStageElements = 2 * kTile * kStride;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  a += static_cast<size_t>(blockIdx.y) * kTile * k;
  b += static_cast<size_t>(blockIdx.x) * kTile * k;
  float sums[kTile / 8][4] = {};

  load_stage(shared, shared + kTile * kStride, a, b, k);
  for (int first = 0, stage = 0; first < k; first += kDepth, stage ^= 1) {
    if (first + kDepth < k) {
      T* const next = shared + (stage ^ 1) * kStageElements;
      load_stage(next, next + kTile * kStride, a + first + kDepth, b + first + kDepth, k);
      cp_async_wait<1>();
    } else {
      cp_async_wait<0>();
    }
    __syncthreads();
    const T* const tile_a = shared + stage * kStageElements + warp * 16 * kStride;
    const T* const tile_b = shared + stage * kStageElements + kTile * kStride;
#pragma unroll
    for (int depth = 0; depth < kDepth; depth += 16) {
      uint32_t from_a[4];
      ldmatrix_x4(from_a, tile_a + lane % 16 * kStride + depth + lane / 16 * 8);
#pragma unroll
      for (int column = 0; column < kTile; column += 16) {
        uint32_t from_b[4];
        ldmatrix_x4(from_b, tile_b + (column + lane % 8 + lane / 16 * 8) * kStride + depth +
                                lane / 8 % 2 * 8);
        mma_16x8x16<T>(sums[column / 8], from_a, {from_b[0], from_b[1]});
        mma_16x8x16<T>(sums[column / 8 + 1], from_a, {from_b[2], from_b[3]});
      }
    }
    __syncthreads();  // before the next stage overwrites this one
  }

  const int row = blockIdx.y * kTile + warp * 16 + lane / 4;
  for (int i = 0; i < kTile / 8; ++i) {
    const int column = blockIdx.x * kTile + i * 8 + lane % 4 * 2;
    store(c + static_cast<size_t>(row) * n + column, Vector<float, 2>{{sums[i][0], sums[i][1]}});
    store(c + static_cast<size_t>(row + 8) * n + column,
          Vector<float, 2>{{sums[i][2], sums[i][3]}});
  }
}

}  // namespace

void softmax_rows(cudaStream_t stream, float* y, const float* x, int rows, int columns) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(rows);
  config.blockDim = dim3(kRowThreads);
  config.stream = stream;
  cudaLaunchKernelEx(&config, softmax_kernel, y, x, columns);
}

template <typename T>
void matmul(cudaStream_t stream, float* c, const T* a, const T* b, int m, int n, int k) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(n / kTile, m / kTile);
  config.blockDim = dim3(128);
  config.dynamicSmemBytes = size_t{kStages} * 2 * kTile * kStride * sizeof(T);
  config.stream = stream;
  cudaLaunchKernelEx(&config, matmul_kernel<T>, c, a, b, n, k);
}
template void matmul<bf16>(cudaStream_t, float*, const bf16*, const bf16*, int, int, int);
template void matmul<f16>(cudaStream_t, float*, const f16*, const f16*, int, int, int);

}  // namespace tgi::cuda_emulation_samples
