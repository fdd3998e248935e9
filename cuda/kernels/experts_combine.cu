// See experts.h: the rows of experts times their weights, and the sum of a token's.
#include "base/error.h"
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/experts.h"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/row_launch.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

// Block (choice, columns): the row of a token and one of its experts.
template <typename T, int N>
__global__ void weigh_experts(ExpertRoutes routes, T* x, int64_t stride, int32_t cols) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto col = static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x) * N;
  if (col >= cols) return;
  const float weight = routes.memory.weights[blockIdx.x];
  T* const at = x + routes.memory.rows[blockIdx.x] * stride + col;
  Vector<T, N> values = load<T, N>(at);
#pragma unroll
  for (int n = 0; n < N; ++n) values.at[n] = from_float<T>(weight * to_float(values.at[n]));
  store<T, N>(at, values);
}

template <typename T, int N>
__global__ void combine_experts(ExpertRoutes routes,
                                bool is_weighted,
                                const T* x,
                                int64_t x_stride,
                                const T* given,
                                int64_t given_stride,
                                T* out,
                                int64_t out_stride,
                                int32_t cols) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t token = blockIdx.x;
  const auto col = static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x) * N;
  if (col >= cols) return;
  const int32_t* const rows = routes.memory.rows + token * routes.top_k;
  const int32_t* const experts = routes.memory.experts + token * routes.top_k;
  const float* const weights = routes.memory.weights + token * routes.top_k;
  float sums[N] = {};
  for (int32_t i = 0; i < routes.top_k; ++i) {
    const bool has_matrix = experts[i] < routes.num_matrices;
    if (!has_matrix && given == nullptr) continue;
    const T* const from = has_matrix ? x + rows[i] * x_stride : given + token * given_stride;
    const Vector<T, N> values = load<T, N>(from + col);
    const float weight = is_weighted ? 1.0F : weights[i];
#pragma unroll
    for (int n = 0; n < N; ++n) sums[n] = fmaf(weight, to_float(values.at[n]), sums[n]);
  }
  Vector<T, N> result;
#pragma unroll
  for (int n = 0; n < N; ++n) result.at[n] = from_float<T>(sums[n]);
  store<T, N>(out + token * out_stride + col, result);
}

}  // namespace

void launch_weigh_experts(cudaStream_t stream, const WeighArgs& args, const ExpertRoutes& routes) {
  if (args.x.rows == 0) return;
  TGI_CHECK(args.x.rows == routes.num_rows());
  with_width(args.x.dtype, is_wide(args.x), [&](auto element, auto width) {
    using T = decltype(element);
    launch(stream, elementwise(args.x.rows, args.x.cols, width()), weigh_experts<T, width()>,
           routes, args.x.as<T>(), args.x.stride, static_cast<int32_t>(args.x.cols));
  });
}

void launch_combine_experts(cudaStream_t stream,
                            const CombineArgs& args,
                            const ExpertRoutes& routes) {
  if (args.out.rows == 0) return;
  const bool all_wide =
      is_wide(args.x) && is_wide(args.out) && (args.given == nullptr || is_wide(*args.given));
  with_width(args.out.dtype, all_wide, [&](auto element, auto width) {
    using T = decltype(element);
    launch(stream, elementwise(args.out.rows, args.out.cols, width()), combine_experts<T, width()>,
           routes, args.is_weighted, args.x.as<const T>(), args.x.stride,
           args.given == nullptr ? nullptr : args.given->as<const T>(),
           args.given == nullptr ? 0 : args.given->stride, args.out.as<T>(), args.out.stride,
           static_cast<int32_t>(args.out.cols));
  });
}

}  // namespace tgi::cuda
