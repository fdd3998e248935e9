// The kernels that multiply with packed matrices, and their launches for one kind of codes: each
// kind is compiled in a file of its own. A linear has one matrix; of experts each tile of rows has
// that of its own.
#pragma once

#include <algorithm>

#include "base/error.h"
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/packed_block.cuh"
#include "cuda/kernels/packed_product.h"
#include "cuda/kernels/packed_shared.cuh"
#include "cuda/kernels/packed_stream.cuh"
#include "cuda/kernels/packed_unpack.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {

// What a CUDA block multiplies: rows of one tile with the matrix that they are sent to.
struct PackedTile {
  const std::byte* w;
  const float* bias;
  int32_t first_row;
  int32_t num_rows;
};

__device__ __forceinline__ PackedTile packed_tile(const PackedProduct& product) {
  const unsigned index = blockIdx.x % product.num_tiles;
  if (product.experts == nullptr) {
    const int32_t first_row = static_cast<int32_t>(index) * product.tile_rows;
    return {.w = product.w,
            .bias = product.bias,
            .first_row = first_row,
            .num_rows = min(product.tile_rows, product.num_rows - first_row)};
  }
  const ExpertTile tile = product.tiles[index];
  if (tile.num_rows == 0) return {};  // its expert may have no matrix
  const ExpertPointers expert = product.experts[tile.expert];
  return {.w = static_cast<const std::byte*>(expert.w),
          .bias = expert.bias,
          .first_row = tile.first_row,
          .num_rows = tile.num_rows};
}

template <typename T>
__device__ __forceinline__ const T* packed_row_of_x(const PackedProduct& product, int32_t row) {
  const int32_t from = product.tokens == nullptr ? row : product.tokens[row];
  return static_cast<const T*>(product.x) + from * product.x_stride;
}

// How many CUDA blocks of packed_stream share a multiprocessor.
template <PackedNumbers kNumbers, int kTiles>
inline constexpr int kStreamBlocks = kTiles == 1 && kNumbers == PackedNumbers::kScales ? 4 : 2;

template <typename T, PackedCodes kCodes, bool kFine, PackedNumbers kNumbers, int kTiles>
__global__ void __launch_bounds__(32 * kStreamWarps, (kStreamBlocks<kNumbers, kTiles>))
    packed_stream(const __grid_constant__ PackedProduct product) {
  const bool is_expert = product.experts != nullptr;
  if (is_expert) {
    // Where the weights are depends on the kernels before.
    wait_for_previous_kernel();
    launch_next_kernel();
  }
  const PackedTile tile = packed_tile(product);
  if (tile.num_rows == 0) return;
  multiply_packed<T, kCodes, kFine, kNumbers, kTiles>(
      product.shape, tile.w, static_cast<int32_t>(blockIdx.x / product.num_tiles), tile.bias,
      tile.num_rows, [&](int32_t row) { return packed_row_of_x<T>(product, tile.first_row + row); },
      [&] {
        if (is_expert) return;
        wait_for_previous_kernel();
        launch_next_kernel();
      },
      [&](int32_t row, int32_t output, float sum) {
        const int64_t at = (tile.first_row + row) * product.out_stride + output;
        if (product.out_is_f32) {
          static_cast<float*>(product.out)[at] = sum;
        } else {
          static_cast<T*>(product.out)[at] = from_float<T>(sum);
        }
      });
}

template <typename T, PackedCodes kCodes, int kRows>
__global__ void __launch_bounds__(kBlockThreads, 2)
    packed_block(const __grid_constant__ PackedProduct product) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const PackedTile tile = packed_tile(product);
  if (tile.num_rows == 0) return;
  const BlockProduct<T> block = {
      .outputs = product.shape.outputs,
      .first_output = static_cast<int32_t>(blockIdx.x / product.num_tiles) * kBlockOutputs,
      .cols = product.shape.cols,
      .bias = tile.bias,
      .num_rows = tile.num_rows,
      .out = static_cast<T*>(product.out) + tile.first_row * product.out_stride,
      .out_stride = product.out_stride};
  const PackedWeights<T, kCodes> weights(tile.w, product.shape, block.first_output);
  MatmulBlock<T, kRows, PackedWeights<T, kCodes>>(block, weights, [&](int32_t row) {
    return packed_row_of_x<T>(product, tile.first_row + row);
  }).run();
}

inline LaunchShape packed_grid(const PackedProduct& product, int outputs, int threads) {
  const int64_t num_outputs = (product.shape.outputs + outputs - 1) / outputs;
  return {.grid = dim3(static_cast<unsigned>(product.num_tiles * num_outputs)),
          .block = dim3(static_cast<unsigned>(threads)),
          .shared_bytes = 0,
          .overlaps_previous = true};
}

// Calls use(PackedNumbers) as a constant: what the matrix has beside its codes.
template <PackedCodes kCodes, typename Use>
void with_numbers(const PackedShape& shape, Use use) {
  const bool has_more = shape.has_minima || shape.scales == PackedScales::kFactors;
  if constexpr (!has_only_scales(kCodes)) {
    if (has_more) return use(std::integral_constant<PackedNumbers, PackedNumbers::kAny>{});
  }
  TGI_CHECK(!has_more);
  use(std::integral_constant<PackedNumbers, PackedNumbers::kScales>{});
}

template <typename T, PackedCodes kCodes, bool kFine, PackedNumbers kNumbers>
void launch_stream_of(cudaStream_t stream, const PackedProduct& product) {
  const LaunchShape shape = packed_grid(product, kPanelOutputs, 32 * kStreamWarps);
  if (product.tile_rows <= 8) {
    return launch(stream, shape, packed_stream<T, kCodes, kFine, kNumbers, 1>, product);
  }
  if (product.tile_rows <= 32) {
    return launch(stream, shape, packed_stream<T, kCodes, kFine, kNumbers, 4>, product);
  }
  launch(stream, shape, packed_stream<T, kCodes, kFine, kNumbers, 8>, product);
}

template <PackedCodes kCodes>
void launch_stream_of(cudaStream_t stream, const PackedProduct& product, DType dtype) {
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    const auto with_groups = [&](auto fine) {
      with_numbers<kCodes>(product.shape, [&](auto numbers) {
        launch_stream_of<T, kCodes, fine(), numbers()>(stream, product);
      });
    };
    if (product.shape.is_fine()) return with_groups(std::true_type{});
    with_groups(std::false_type{});
  });
}

template <PackedCodes kCodes, PackedNumbers kNumbers, typename T>
void launch_shared_of(cudaStream_t stream, const PackedProduct& product) {
  LaunchShape shape = packed_grid(product, kSharedOutputs, 32 * kSharedWarps);
  shape.grid.y = static_cast<unsigned>(product.num_splits);
  const auto with_tiles = [&](auto tiles) {
    shape.shared_bytes = shared_x_bytes<kCodes>(tiles());
    launch(stream, shape, packed_shared<T, kCodes, kNumbers, tiles()>, product);
  };
  if (product.num_rows <= 16) {
    with_tiles(std::integral_constant<int, 2>{});
  } else if (product.num_rows <= 32) {
    with_tiles(std::integral_constant<int, 4>{});
  } else {
    with_tiles(std::integral_constant<int, 8>{});
  }
  if (product.num_splits == 1) return;
  constexpr unsigned kThreads = 256;
  launch(stream,
         {.grid = dim3((static_cast<unsigned>(product.shape.outputs) + kThreads - 1) / kThreads,
                       static_cast<unsigned>(product.num_rows)),
          .block = dim3(kThreads),
          .shared_bytes = 0,
          .overlaps_previous = true},
         add_up_splits<T>, product);
}

template <PackedCodes kCodes>
void launch_shared_of(cudaStream_t stream, const PackedProduct& product, DType dtype) {
  TGI_CHECK(product.num_rows <= 64 && product.num_tiles == 1 && !product.shape.is_fine());
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    with_numbers<kCodes>(product.shape, [&](auto numbers) {
      launch_shared_of<kCodes, numbers(), T>(stream, product);
    });
  });
}

template <PackedCodes kCodes>
void launch_block_of(cudaStream_t stream, const PackedProduct& product, DType dtype) {
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    LaunchShape shape = packed_grid(product, kBlockOutputs, kBlockThreads);
    shape.shared_bytes = block_shared_bytes(product.tile_rows);
    if (product.tile_rows == 64) {
      launch(stream, shape, packed_block<T, kCodes, 64>, product);
    } else {
      launch(stream, shape, packed_block<T, kCodes, 128>, product);
    }
  });
}

template <PackedCodes kCodes>
void launch_unpack_of(cudaStream_t stream, const PackedUnpackLaunch& args) {
  const PackedShape& shape = args.shape;
  with_element(args.out.dtype, [&](auto element) {
    using T = decltype(element);
    launch(
        stream,
        {.grid = dim3(static_cast<unsigned>((args.out.rows + kPanelOutputs - 1) / kPanelOutputs),
                      static_cast<unsigned>((shape.num_chunks + kUnpackWarps - 1) / kUnpackWarps)),
         .block = dim3(32 * kUnpackWarps),
         .shared_bytes = 0,
         .overlaps_previous = true},
        packed_unpack<T, kCodes>, shape, static_cast<const std::byte*>(args.w), args.first_output,
        static_cast<int32_t>(args.out.rows), args.out.as<T>(), args.out.stride);
  });
}

template <typename T, PackedCodes kCodes>
void prepare_kernels_of() {
  allow_shared(packed_shared<T, kCodes, PackedNumbers::kScales, 8>, shared_x_bytes<kCodes>(8));
  if constexpr (!has_only_scales(kCodes)) {
    allow_shared(packed_shared<T, kCodes, PackedNumbers::kAny, 8>, shared_x_bytes<kCodes>(8));
  }
  allow_shared(packed_block<T, kCodes, 64>, block_shared_bytes(64));
  allow_shared(packed_block<T, kCodes, 128>, block_shared_bytes(128));
}

template <PackedCodes kCodes>
void prepare_kernels_of() {
  prepare_kernels_of<bf16, kCodes>();
  prepare_kernels_of<f16, kCodes>();
}

template <PackedCodes kCodes>
PackedKernels kernels_of() {
  return {.stream = launch_stream_of<kCodes>,
          .shared = launch_shared_of<kCodes>,
          .block = launch_block_of<kCodes>,
          .unpack = launch_unpack_of<kCodes>,
          .prepare = prepare_kernels_of<kCodes>};
}

}  // namespace tgi::cuda
