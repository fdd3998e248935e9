// See matmul.h; what a CUDA block does is told in matmul_tile.cuh.
#include <algorithm>
#include <type_traits>

#include "base/error.h"
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/matmul.h"
#include "cuda/kernels/matmul_tile.cuh"
#include "cuda/kernels/ptx.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

template <typename T, typename Out, int kTiles>
__global__ void __launch_bounds__(32 * kStreamWarps) matmul_stream(const T* __restrict__ w,
                                                                   int64_t w_stride,
                                                                   int32_t outputs,
                                                                   int32_t cols,
                                                                   const T* x,
                                                                   int64_t x_stride,
                                                                   int32_t rows,
                                                                   const float* __restrict__ bias,
                                                                   Out* out,
                                                                   int64_t out_stride) {
  const int32_t first_row = static_cast<int32_t>(blockIdx.y) * kTiles * kStreamTileRows;
  const StreamProduct<T, Out> product = {
      .w = w,
      .w_stride = w_stride,
      .outputs = outputs,
      .first_output = static_cast<int32_t>(blockIdx.x) * kStreamRowsOfW,
      .cols = cols,
      .bias = bias,
      .num_rows = rows - first_row,
      .out = out + first_row * out_stride,
      .out_stride = out_stride};
  // Weights don't depend on the kernel before: the first are on their way while it ends.
  multiply_streamed<kTiles>(
      product, [=](int32_t row) { return x + (first_row + row) * x_stride; },
      [] {
        wait_for_previous_kernel();
        launch_next_kernel();
      });
}

template <typename T, typename Out, int kTiles>
void launch_tiles(cudaStream_t stream, const MatmulLaunch& args) {
  const int64_t rows_at_once = int64_t{kTiles} * kStreamTileRows;
  launch(stream,
         {.grid = dim3(static_cast<unsigned>((args.outputs + kStreamRowsOfW - 1) / kStreamRowsOfW),
                       static_cast<unsigned>((args.x.rows + rows_at_once - 1) / rows_at_once)),
          .block = dim3(32 * kStreamWarps),
          .shared_bytes = 0,
          .overlaps_previous = true},
         matmul_stream<T, Out, kTiles>, static_cast<const T*>(args.w), args.w_stride,
         static_cast<int32_t>(args.outputs), static_cast<int32_t>(args.x.cols),
         args.x.as<const T>(), args.x.stride, static_cast<int32_t>(args.x.rows), args.bias,
         args.out.as<Out>(), args.out.stride);
}

template <typename T, typename Out>
void launch_rows(cudaStream_t stream, const MatmulLaunch& args) {
  const int64_t rows = args.x.rows;
  if (rows <= 8) return launch_tiles<T, Out, 1>(stream, args);
  if (rows <= 16) return launch_tiles<T, Out, 2>(stream, args);
  if (rows <= 32) return launch_tiles<T, Out, 4>(stream, args);
  launch_tiles<T, Out, 8>(stream, args);
}

template <typename T, typename Out>
__global__ void matmul_plain(const T* w,
                             int64_t w_stride,
                             int32_t outputs,
                             int32_t cols,
                             const T* x,
                             int64_t x_stride,
                             const float* bias,
                             Out* out,
                             int64_t out_stride) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  const auto output = static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x);
  if (output >= outputs) return;
  const T* const w_row = w + output * w_stride;
  const T* const x_row = x + row * x_stride;
  float sum = 0.0F;
  for (int32_t k = 0; k < cols; ++k) sum += to_float(w_row[k]) * to_float(x_row[k]);
  if (bias != nullptr) sum += bias[output];
  out[row * out_stride + output] = from_float<Out>(sum);
}

// Calls use(T{}, Out{}).
template <typename Use>
void with_types(const MatmulLaunch& args, Use use) {
  with_element(args.x.dtype, [&](auto element) {
    if (args.out.dtype == DType::kF32) return use(element, float{});
    TGI_CHECK(args.out.dtype == args.x.dtype);
    use(element, element);
  });
}

}  // namespace

bool is_aligned(const MatmulLaunch& args) {
  const auto address = [](const void* pointer) {
    return reinterpret_cast<uintptr_t>(pointer) % 16;
  };
  return args.x.cols % 8 == 0 && args.x.stride % 8 == 0 && args.w_stride % 8 == 0 &&
         address(args.x.data) == 0 && address(args.w) == 0;
}

int64_t alignment_of(const MatmulLaunch& args) {
  const auto bits = reinterpret_cast<uintptr_t>(args.x.data) | reinterpret_cast<uintptr_t>(args.w) |
                    reinterpret_cast<uintptr_t>(args.out.data) | kMaxAlignment;
  return static_cast<int64_t>(bits & (~bits + 1));
}

void launch_matmul_stream(cudaStream_t stream, const MatmulLaunch& args) {
  if (args.x.rows == 0) return;
  TGI_CHECK(is_aligned(args));
  with_types(args, [&](auto element, auto result) {
    launch_rows<decltype(element), decltype(result)>(stream, args);
  });
}

void launch_matmul_plain(cudaStream_t stream, const MatmulLaunch& args) {
  if (args.x.rows == 0) return;
  constexpr unsigned kThreads = 128;
  with_types(args, [&](auto element, auto result) {
    using T = decltype(element);
    using Out = decltype(result);
    launch(stream,
           {.grid = dim3(static_cast<unsigned>(args.x.rows),
                         static_cast<unsigned>((args.outputs + kThreads - 1) / kThreads)),
            .block = dim3(kThreads),
            .shared_bytes = 0,
            .overlaps_previous = true},
           matmul_plain<T, Out>, static_cast<const T*>(args.w), args.w_stride,
           static_cast<int32_t>(args.outputs), static_cast<int32_t>(args.x.cols),
           args.x.as<const T>(), args.x.stride, args.bias, args.out.as<Out>(), args.out.stride);
  });
}

}  // namespace tgi::cuda
