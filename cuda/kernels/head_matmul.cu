// See latent.h: the matmuls of all heads in one launch, each with its own matrix, by the kernels
// that dense layers and experts have.
#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/latent.h"
#include "cuda/kernels/matmul_block.cuh"
#include "cuda/kernels/matmul_tile.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kBlockRows = 128;
constexpr int kMaxStreamedRows = 64;

struct HeadProduct {
  HeadMatmulLaunch launch;

  template <typename T>
  __device__ __forceinline__ const T* w() const {
    return static_cast<const T*>(launch.heads[blockIdx.z]);
  }
  template <typename T>
  __device__ __forceinline__ const T* x(int64_t row) const {
    return static_cast<const T*>(launch.x.data) + row * launch.x.stride +
           blockIdx.z * launch.x_step;
  }
  template <typename T>
  __device__ __forceinline__ T* out(int64_t row) const {
    return static_cast<T*>(launch.out.data) + row * launch.out.stride +
           blockIdx.z * launch.out_step;
  }
};

template <typename T, int kTiles>
__global__ void __launch_bounds__(32 * kStreamWarps)
    head_matmul_stream(const __grid_constant__ HeadProduct product) {
  const auto first_row = static_cast<int32_t>(blockIdx.y) * kTiles * kStreamTileRows;
  const StreamProduct<T, T> streamed = {
      .w = product.w<T>(),
      .w_stride = product.launch.w_stride,
      .outputs = static_cast<int32_t>(product.launch.outputs),
      .first_output = static_cast<int32_t>(blockIdx.x) * kStreamRowsOfW,
      .cols = static_cast<int32_t>(product.launch.cols),
      .bias = nullptr,
      .num_rows = static_cast<int32_t>(product.launch.x.rows) - first_row,
      .out = product.out<T>(first_row),
      .out_stride = product.launch.out.stride};
  multiply_streamed<kTiles>(
      streamed, [&](int32_t row) { return product.x<T>(first_row + row); },
      [] {
        wait_for_previous_kernel();
        launch_next_kernel();
      });
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads, 2)
    head_matmul_block(const __grid_constant__ HeadProduct product) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto first_row = static_cast<int32_t>(blockIdx.y) * kBlockRows;
  const BlockProduct<T> block = {
      .outputs = static_cast<int32_t>(product.launch.outputs),
      .first_output = static_cast<int32_t>(blockIdx.x) * kBlockOutputs,
      .cols = static_cast<int32_t>(product.launch.cols),
      .bias = nullptr,
      .num_rows = min(static_cast<int32_t>(product.launch.x.rows) - first_row, kBlockRows),
      .out = product.out<T>(first_row),
      .out_stride = product.launch.out.stride};
  const DenseWeights<T> weights(product.w<T>(), product.launch.w_stride, block.first_output,
                                block.outputs, block.cols);
  MatmulBlock<T, kBlockRows>(block, weights, [&](int32_t row) {
    return product.x<T>(first_row + row);
  }).run();
}

// Any shape, one thread an output; slow.
template <typename T>
__global__ void head_matmul_plain(const __grid_constant__ HeadProduct product) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto output = static_cast<int64_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (output >= product.launch.outputs) return;
  const T* const w = product.w<T>() + output * product.launch.w_stride;
  for (int64_t row = blockIdx.y; row < product.launch.x.rows; row += gridDim.y) {
    const T* const x = product.x<T>(row);
    float sum = 0.0F;
    for (int64_t k = 0; k < product.launch.cols; ++k) sum += to_float(w[k]) * to_float(x[k]);
    product.out<T>(row)[output] = from_float<T>(sum);
  }
}

bool has_aligned_heads(const HeadMatmulLaunch& args) {
  return args.cols % 8 == 0 && args.x_step % 8 == 0 && args.x.stride % 8 == 0 &&
         args.w_stride % 8 == 0 && reinterpret_cast<uintptr_t>(args.x.data) % 16 == 0;
}

LaunchShape shape_for(const HeadMatmulLaunch& args, int64_t outputs, int64_t rows, int threads) {
  const auto pieces = [](int64_t count, int64_t each) {
    return static_cast<unsigned>((count + each - 1) / each);
  };
  return {.grid = dim3(pieces(args.outputs, outputs), pieces(args.x.rows, rows),
                       static_cast<unsigned>(args.num_heads)),
          .block = dim3(static_cast<unsigned>(threads)),
          .shared_bytes = 0,
          .overlaps_previous = true};
}

template <typename T, int kTiles>
void launch_stream(cudaStream_t stream, const HeadMatmulLaunch& args) {
  launch(stream, shape_for(args, kStreamRowsOfW, kTiles * kStreamTileRows, 32 * kStreamWarps),
         head_matmul_stream<T, kTiles>, HeadProduct{args});
}

}  // namespace

void prepare_head_matmul() {
  allow_shared(head_matmul_block<bf16>, block_shared_bytes(kBlockRows));
  allow_shared(head_matmul_block<f16>, block_shared_bytes(kBlockRows));
}

void launch_head_matmul(cudaStream_t stream, const HeadMatmulLaunch& args) {
  if (args.x.rows == 0) return;
  TGI_CHECK(args.num_heads <= kMaxLatentHeads && args.out.dtype == args.x.dtype);
  with_element(args.x.dtype, [&](auto element) {
    using T = decltype(element);
    if (!has_aligned_heads(args)) {
      constexpr int kThreads = 128;
      constexpr int64_t kMaxRows = 65535;
      LaunchShape shape = shape_for(args, kThreads, 1, kThreads);
      shape.grid.y = static_cast<unsigned>(std::min(args.x.rows, kMaxRows));
      launch(stream, shape, head_matmul_plain<T>, HeadProduct{args});
    } else if (args.x.rows > kMaxStreamedRows && !args.one_kernel) {
      LaunchShape shape = shape_for(args, kBlockOutputs, kBlockRows, kBlockThreads);
      shape.shared_bytes = block_shared_bytes(kBlockRows);
      launch(stream, shape, head_matmul_block<T>, HeadProduct{args});
    } else if (args.x.rows <= 8) {
      launch_stream<T, 1>(stream, args);
    } else if (args.x.rows <= 16) {
      launch_stream<T, 2>(stream, args);
    } else {
      launch_stream<T, 8>(stream, args);
    }
  });
}

}  // namespace tgi::cuda
