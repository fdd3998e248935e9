// out = x w^T + bias with the two kernels of our own: one that streams the weights once past few
// rows of x, at memory speed, and one for shapes that no vector load fits. What is between is
// cuBLASLt's (cuda/cublas.h).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace tgi::cuda {

// x: (rows, cols) and w: (outputs, cols) of one 16-bit type; out: (rows, outputs) of that type or
// f32.
struct MatmulLaunch {
  Tensor x;
  const void* w = nullptr;
  int64_t w_stride = 0;  // elements
  int64_t outputs = 0;
  const float* bias = nullptr;  // (optional) (outputs)
  Tensor out;
};

inline constexpr int64_t kMaxStreamRows = 64;

// 16-byte aligned rows whose lengths are multiples of 8 elements: what matmul_stream and cuBLASLt
// want.
bool is_aligned(const MatmulLaunch& launch);

// What the addresses of x, w and out are multiples of, at most kMaxAlignment bytes: the smallest of
// the three.
inline constexpr int64_t kMaxAlignment = 64;
int64_t alignment_of(const MatmulLaunch& launch);

// Any number of rows; made for up to kMaxStreamRows. The bits of a row of out depend on neither the
// other rows nor their number. REQUIRES: is_aligned.
void launch_matmul_stream(cudaStream_t stream, const MatmulLaunch& launch);

// Any shape, one thread an output; slow.
void launch_matmul_plain(cudaStream_t stream, const MatmulLaunch& launch);

}  // namespace tgi::cuda
