// See rows.h: rows of the activation type as the f32 that a step reports.
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/row_launch.h"
#include "cuda/kernels/rows.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

template <typename T, int N>
__global__ void report_rows(
    const T* x, int64_t x_stride, float* out, int64_t out_stride, int32_t cols) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  const auto col = static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x) * N;
  if (col >= cols) return;
  const Vector<T, N> values = load<T, N>(x + row * x_stride + col);
  float* const to = out + row * out_stride + col;
  if constexpr (N == 1) {
    *to = to_float(values.at[0]);
  } else {
#pragma unroll
    for (int first = 0; first < N; first += 4) {
      Vector<float, 4> four;
#pragma unroll
      for (int i = 0; i < 4; ++i) four.at[i] = to_float(values.at[first + i]);
      store<float, 4>(to + first, four);
    }
  }
}

}  // namespace

void launch_report_rows(cudaStream_t stream, const Tensor& x, float* out, int64_t out_stride) {
  if (x.rows == 0) return;
  const bool wide = is_wide(x) && out_stride % 4 == 0 && reinterpret_cast<uintptr_t>(out) % 16 == 0;
  with_width(x.dtype, wide, [&](auto element, auto width) {
    using T = decltype(element);
    launch(stream, elementwise(x.rows, x.cols, width()), report_rows<T, width()>, x.as<const T>(),
           x.stride, out, out_stride, static_cast<int32_t>(x.cols));
  });
}

}  // namespace tgi::cuda
