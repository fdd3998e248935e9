// See experts.h. A CUDA block takes a tile of the rows sent to an expert and 16 rows of its matrix
// (matmul_tile.cuh) or, where there are many rows, 128 (matmul_block.cuh). The blocks of a tile's
// neighbours run together, so that a matrix that many rows are sent to is read from memory once.
#include <type_traits>

#include "base/error.h"
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/experts.h"
#include "cuda/kernels/matmul_block.cuh"
#include "cuda/kernels/matmul_tile.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

// What both kernels are given.
struct ExpertProduct {
  const ExpertPointers* experts;
  const ExpertTile* tiles;
  const int32_t* tokens;  // of each row; null: x has a row for each
  int64_t w_stride;
  int64_t x_stride;
  int64_t out_stride;
  int32_t outputs;
  int32_t cols;
  unsigned num_tiles;
};

template <typename T>
__device__ __forceinline__ const T* row_of_x(const ExpertProduct& product,
                                             const T* x,
                                             int32_t row) {
  return x + int64_t{product.tokens == nullptr ? row : product.tokens[row]} * product.x_stride;
}

template <typename T, int kTiles>
__global__ void __launch_bounds__(32 * kStreamWarps)
    expert_matmul(ExpertProduct product, const T* x, T* out) {
  // Where the weights are depends on the kernels before.
  wait_for_previous_kernel();
  launch_next_kernel();
  const ExpertTile tile = product.tiles[blockIdx.x % product.num_tiles];
  if (tile.num_rows == 0) return;
  const ExpertPointers expert = product.experts[tile.expert];
  const StreamProduct<T, T> streamed = {
      .w = static_cast<const T*>(expert.w),
      .w_stride = product.w_stride,
      .outputs = product.outputs,
      .first_output = static_cast<int32_t>(blockIdx.x / product.num_tiles) * kStreamRowsOfW,
      .cols = product.cols,
      .bias = expert.bias,
      .num_rows = tile.num_rows,
      .out = out + tile.first_row * product.out_stride,
      .out_stride = product.out_stride};
  multiply_streamed<kTiles>(
      streamed, [&](int32_t row) { return row_of_x(product, x, tile.first_row + row); }, [] {});
}

template <typename T, int kRows>
__global__ void __launch_bounds__(kBlockThreads, 2)
    expert_matmul_block(ExpertProduct product, const T* x, T* out) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const ExpertTile tile = product.tiles[blockIdx.x % product.num_tiles];
  if (tile.num_rows == 0) return;
  const ExpertPointers expert = product.experts[tile.expert];
  const BlockProduct<T> block = {
      .outputs = product.outputs,
      .first_output = static_cast<int32_t>(blockIdx.x / product.num_tiles) * kBlockOutputs,
      .cols = product.cols,
      .bias = expert.bias,
      .num_rows = tile.num_rows,
      .out = out + tile.first_row * product.out_stride,
      .out_stride = product.out_stride};
  const DenseWeights<T> weights(static_cast<const T*>(expert.w), product.w_stride,
                                block.first_output, product.outputs, product.cols);
  MatmulBlock<T, kRows>(block, weights, [&](int32_t row) {
    return row_of_x(product, x, tile.first_row + row);
  }).run();
}

// Any shape, one thread an output of a tile; slow.
template <typename T>
__global__ void expert_matmul_plain(ExpertProduct product, const T* x, T* out) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const ExpertTile tile = product.tiles[blockIdx.x % product.num_tiles];
  const auto output =
      static_cast<int32_t>(blockIdx.x / product.num_tiles * blockDim.x + threadIdx.x);
  if (tile.num_rows == 0 || output >= product.outputs) return;
  const ExpertPointers expert = product.experts[tile.expert];
  const T* const w_row = static_cast<const T*>(expert.w) + output * product.w_stride;
  for (int32_t row = tile.first_row; row < tile.first_row + tile.num_rows; ++row) {
    const T* const x_row = row_of_x(product, x, row);
    float sum = 0.0F;
    for (int32_t k = 0; k < product.cols; ++k) sum += to_float(w_row[k]) * to_float(x_row[k]);
    if (expert.bias != nullptr) sum += expert.bias[output];
    out[row * product.out_stride + output] = from_float<T>(sum);
  }
}

bool has_aligned_rows(const ExpertMatmulLaunch& args) {
  // Matrices are where memory was allocated: aligned to 256 bytes.
  return args.x.cols % 8 == 0 && args.x.stride % 8 == 0 && args.w_stride % 8 == 0 &&
         reinterpret_cast<uintptr_t>(args.x.data) % 16 == 0;
}

// All tiles of some outputs, then those of the next ones: both may be more than the second number
// of a grid.
LaunchShape shape_for(const ExpertRoutes& routes, int64_t outputs, int64_t per_block, int threads) {
  const int64_t num_blocks = routes.num_tiles * ((outputs + per_block - 1) / per_block);
  return {.grid = dim3(static_cast<unsigned>(num_blocks)),
          .block = dim3(static_cast<unsigned>(threads)),
          .shared_bytes = 0,
          .overlaps_previous = true};
}

// Calls use(std::integral_constant<int, mma tiles in a tile of routes>{}).
template <typename Use>
void with_stream_tiles(int32_t tile_rows, Use use) {
  if (tile_rows == 8) return use(std::integral_constant<int, 1>{});
  if (tile_rows == 16) return use(std::integral_constant<int, 2>{});
  if (tile_rows == 32) return use(std::integral_constant<int, 4>{});
  TGI_CHECK(tile_rows == 64);
  use(std::integral_constant<int, 8>{});
}

// Calls use(std::integral_constant<int, rows in a tile of routes>{}).
template <typename Use>
void with_block_rows(int32_t tile_rows, Use use) {
  if (tile_rows == 64) return use(std::integral_constant<int, 64>{});
  TGI_CHECK(tile_rows == 128);
  use(std::integral_constant<int, 128>{});
}

template <typename T, int kRows>
void allow_block_shared() {
  allow_shared(expert_matmul_block<T, kRows>, block_shared_bytes(kRows));
}

}  // namespace

void prepare_expert_kernels() {
  allow_block_shared<bf16, 64>();
  allow_block_shared<bf16, 128>();
  allow_block_shared<f16, 64>();
  allow_block_shared<f16, 128>();
}

void launch_expert_matmul(cudaStream_t stream,
                          const ExpertMatmulLaunch& args,
                          const ExpertRoutes& routes) {
  if (routes.num_tokens == 0) return;
  TGI_CHECK(args.out.dtype == args.x.dtype && args.out.rows == routes.num_rows());
  TGI_CHECK(args.x.rows == (args.x_is_routed ? routes.num_rows() : routes.num_tokens));
  const ExpertProduct product = {.experts = args.experts,
                                 .tiles = routes.memory.tiles,
                                 .tokens = args.x_is_routed ? nullptr : routes.memory.tokens,
                                 .w_stride = args.w_stride,
                                 .x_stride = args.x.stride,
                                 .out_stride = args.out.stride,
                                 .outputs = static_cast<int32_t>(args.outputs),
                                 .cols = static_cast<int32_t>(args.x.cols),
                                 .num_tiles = static_cast<unsigned>(routes.num_tiles)};
  with_element(args.x.dtype, [&](auto element) {
    using T = decltype(element);
    if (!has_aligned_rows(args)) {
      constexpr int kThreads = 128;
      launch(stream, shape_for(routes, args.outputs, kThreads, kThreads), expert_matmul_plain<T>,
             product, args.x.as<const T>(), args.out.as<T>());
      return;
    }
    if (routes.has_blocks) {
      with_block_rows(routes.tile_rows, [&](auto rows) {
        LaunchShape shape = shape_for(routes, args.outputs, kBlockOutputs, kBlockThreads);
        shape.shared_bytes = block_shared_bytes(rows());
        launch(stream, shape, expert_matmul_block<T, rows()>, product, args.x.as<const T>(),
               args.out.as<T>());
      });
      return;
    }
    with_stream_tiles(routes.tile_rows, [&](auto tiles) {
      launch(stream, shape_for(routes, args.outputs, kStreamRowsOfW, 32 * kStreamWarps),
             expert_matmul<T, tiles()>, product, args.x.as<const T>(), args.out.as<T>());
    });
  });
}

}  // namespace tgi::cuda
