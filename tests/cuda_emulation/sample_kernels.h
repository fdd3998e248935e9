// Two kernels in the style of cuda/kernels, as samples: the same source compiles with nvcc and for
// the emulation.
#pragma once

#include <cuda_runtime.h>

#include "cuda/kernels/types.cuh"

namespace tgi::cuda_emulation_samples {

// y = softmax(x) of each row, both (rows, columns).
void softmax_rows(cudaStream_t stream, float* y, const float* x, int rows, int columns);

// c (m, n) = a (m, k) times b^T, b (n, k); m and n are multiples of 64, k of 32.
template <typename T>
void matmul(cudaStream_t stream, float* c, const T* a, const T* b, int m, int n, int k);

}  // namespace tgi::cuda_emulation_samples
