// Products of a few rows with a large matrix, on several threads, with the same bits on any
// processor and for any number of threads: each sum goes through its terms in their order.
#pragma once

#include <cstdint>

namespace tgi {

// A matrix of f32 that is read as it lies, or as its transpose.
struct MatrixView {
  const float* data = nullptr;
  int64_t stride = 0;          // elements from one stored row to the next
  bool is_transposed = false;  // element (r, c) is at data[c * stride + r]
};

// out (count, cols) = x (count, inner) times matrix (inner, cols). Cost: with many rows about 20
// GFLOP/s a thread, without AVX.
void multiply_rows(int num_threads,
                   const float* x,
                   int64_t count,
                   int64_t inner,
                   const MatrixView& matrix,
                   int64_t cols,
                   float* out);

}  // namespace tgi
