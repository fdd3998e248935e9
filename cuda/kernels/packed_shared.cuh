// Up to 64 rows of x times a packed matrix with x in shared memory: a CUDA block does 128 outputs,
// each warp a panel, so that x is read once for all of them. Where there are few outputs, several
// blocks share their columns, and what each has is added up by a kernel behind it, in their order.
#pragma once

#include "cuda/kernels/packed_chunk.cuh"
#include "cuda/kernels/packed_product.h"

namespace tgi::cuda {

inline constexpr int kSharedWarps = 8;
inline constexpr int kSharedOutputs = kSharedWarps * kPanelOutputs;
inline constexpr int kSharedStages = 3;  // chunks of x

// Rows of x are so far apart that a lane's four columns of a row lie in banks of their own.
template <PackedCodes kCodes>
inline constexpr int kSharedRowBytes = units_of_chunk(kCodes) * kUnitCols * 2 + 32;

template <PackedCodes kCodes>
constexpr size_t shared_x_bytes(int tiles) {
  return static_cast<size_t>(kSharedStages * tiles * kStreamTileRows * kSharedRowBytes<kCodes>);
}

// One chunk of all rows on its way to `to`; what there is not becomes 0.
template <typename T, PackedCodes kCodes, int kTiles>
__device__ __forceinline__ void fetch_x(const PackedProduct& product,
                                        int32_t chunk,
                                        int32_t end,
                                        std::byte* to) {
  constexpr int kCols = units_of_chunk(kCodes) * kUnitCols;
  constexpr int kPieces = kCols / 8;  // of a row, 16 bytes each
  if (chunk < end) {
    for (int i = static_cast<int>(threadIdx.x); i < kTiles * kStreamTileRows * kPieces;
         i += 32 * kSharedWarps) {
      const int32_t row = i / kPieces;
      const int32_t col = chunk * kCols + i % kPieces * 8;
      const bool is_there = row < product.num_rows && col < product.shape.cols;
      const T* const x = static_cast<const T*>(product.x);
      cp_async_16(to + row * kSharedRowBytes<kCodes> + i % kPieces * 16,
                  is_there ? x + row * product.x_stride + col : x, is_there);
    }
  }
  cp_async_commit();  // also of nothing, so that they can be counted
}

template <typename T, PackedCodes kCodes, PackedNumbers kNumbers, int kTiles>
__global__ void __launch_bounds__(32 * kSharedWarps, 2)
    packed_shared(const __grid_constant__ PackedProduct product) {
  using Chunk = PackedChunk<kCodes, false, kNumbers>;
  constexpr int kStageBytes = kTiles * kStreamTileRows * kSharedRowBytes<kCodes>;
  const PackedShape& shape = product.shape;
  const int group = static_cast<int>(threadIdx.x % 32 / 4);
  const int quad = static_cast<int>(threadIdx.x % 4);
  const auto panel_index = static_cast<int32_t>(blockIdx.x * kSharedWarps + threadIdx.x / 32);
  const std::byte* const panel =
      product.w + min(panel_index, shape.num_panels - 1) * int64_t{shape.panel_bytes};
  const auto split = static_cast<int32_t>(blockIdx.y);
  const int32_t begin = shape.num_chunks * split / product.num_splits;
  const int32_t end = shape.num_chunks * (split + 1) / product.num_splits;
  std::byte* const stages = dynamic_shared();
  float sums[kTiles][4] = {};

  Chunk next = load_chunk<Chunk>(panel, shape, begin);
  wait_for_previous_kernel();
  launch_next_kernel();
#pragma unroll
  for (int i = 0; i < kSharedStages - 1; ++i) {
    fetch_x<T, kCodes, kTiles>(product, begin + i, end, stages + i * kStageBytes);
  }
  int stage = 0;
  for (int32_t chunk = begin; chunk < end; ++chunk) {
    cp_async_wait<kSharedStages - 2>();
    __syncthreads();  // and nobody reads the stage that is filled next
    const int filled = stage == 0 ? kSharedStages - 1 : stage - 1;
    fetch_x<T, kCodes, kTiles>(product, chunk + kSharedStages - 1, end,
                               stages + filled * kStageBytes);
    const Chunk now = next;
    next = load_chunk<Chunk>(panel, shape, min(chunk + 1, end - 1));
    const std::byte* const x =
        stages + stage * kStageBytes + group * kSharedRowBytes<kCodes> + quad * 8;
    multiply_chunk<T, kTiles>(
        shape, now, chunk * Chunk::kUnits,
        [&](int tile, int unit, int half) {
          return *reinterpret_cast<const uint2*>(
              x + tile * kStreamTileRows * kSharedRowBytes<kCodes> + unit * 64 + half * 32);
        },
        sums);
    stage = stage == kSharedStages - 1 ? 0 : stage + 1;
  }
  cp_async_wait<0>();
  if (panel_index >= shape.num_panels) return;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int32_t row = tile * kStreamTileRows + 2 * quad + i % 2;
      const int32_t output = panel_index * kPanelOutputs + group + 8 * (i / 2);
      if (row >= product.num_rows || output >= shape.outputs) continue;
      if (product.num_splits > 1) {
        const int64_t at = (int64_t{split} * product.num_rows + row) * shape.outputs + output;
        product.partials[at] = sums[tile][i];
        continue;
      }
      const float bias = product.bias == nullptr ? 0.0F : product.bias[output];
      static_cast<T*>(product.out)[row * product.out_stride + output] =
          from_float<T>(bias + sums[tile][i]);
    }
  }
}

// What the blocks of a row's columns have, in their order.
template <typename T>
__global__ void add_up_splits(const __grid_constant__ PackedProduct product) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int32_t outputs = product.shape.outputs;
  const auto output = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  const auto row = static_cast<int32_t>(blockIdx.y);
  if (output >= outputs) return;
  float sum = product.bias == nullptr ? 0.0F : product.bias[output];
  for (int32_t split = 0; split < product.num_splits; ++split) {
    sum += product.partials[(int64_t{split} * product.num_rows + row) * outputs + output];
  }
  static_cast<T*>(product.out)[row * product.out_stride + output] = from_float<T>(sum);
}

}  // namespace tgi::cuda
