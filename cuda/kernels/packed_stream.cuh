// What a CUDA block of the kernel for few rows does with a packed matrix: one panel of 16 rows of w
// times up to 64 rows of x, as matmul_tile.cuh does with a dense one. Its warps take turns along
// the chunks of the panel.
#pragma once

#include "cuda/kernels/matmul_tile.cuh"
#include "cuda/kernels/packed_chunk.cuh"

namespace tgi::cuda {

// Four columns of a row of x from `col` on, 0 past its end.
template <typename T>
__device__ __forceinline__ uint2 load_x(const T* row, int32_t col, int32_t cols) {
  return col < cols ? *reinterpret_cast<const uint2*>(row + col) : make_uint2(0, 0);
}

// row_of_x(i) is where row i of x is; those past num_rows are computed from the last one and not
// written. begin() is called when the first weights are on their way, and before x is read.
// write(row, output, sum) for what there is. The bits of a row do not depend on kTiles.
template <typename T,
          PackedCodes kCodes,
          bool kFine,
          PackedNumbers kNumbers,
          int kTiles,
          typename RowOfX,
          typename Begin,
          typename Write>
__device__ __forceinline__ void multiply_packed(const PackedShape& shape,
                                                const std::byte* w,
                                                int32_t panel_index,
                                                const float* bias,
                                                int32_t num_rows,
                                                RowOfX row_of_x,
                                                Begin begin,
                                                Write write) {
  using Chunk = PackedChunk<kCodes, kFine, kNumbers>;
  const int group = static_cast<int>(threadIdx.x % 32 / 4);
  const int quad = static_cast<int>(threadIdx.x % 4);
  const std::byte* const panel = w + panel_index * int64_t{shape.panel_bytes};
  float sums[kTiles][4] = {};

  auto chunk = static_cast<int32_t>(threadIdx.x / 32);
  Chunk next = load_chunk<Chunk>(panel, shape, chunk);
  begin();
  const T* x_rows[kTiles];
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    x_rows[tile] = row_of_x(min(tile * kStreamTileRows + group, num_rows - 1));
  }
  while (chunk < shape.num_chunks) {
    const Chunk now = next;
    const int32_t first_unit = chunk * Chunk::kUnits;
    const int32_t first_col = first_unit * kUnitCols + 4 * quad;
    // Of one tile all at once, so that their latencies are one.
    uint2 of_one_tile[Chunk::kUnits][2];
    if constexpr (kTiles == 1) {
#pragma unroll
      for (int i = 0; i < 2 * Chunk::kUnits; ++i) {
        of_one_tile[i / 2][i % 2] = load_x(x_rows[0], first_col + 16 * i, shape.cols);
      }
    }
    chunk += kStreamWarps;
    next = load_chunk<Chunk>(panel, shape, chunk);
    multiply_chunk<T, kTiles>(
        shape, now, first_unit,
        [&](int tile, int unit, int half) {
          if constexpr (kTiles == 1) return of_one_tile[unit][half];
          return load_x(x_rows[tile], first_col + unit * kUnitCols + 16 * half, shape.cols);
        },
        sums);
  }
  add_up_warps<kTiles>(sums, panel_index * kPanelOutputs, shape.outputs, bias, num_rows, write);
}

}  // namespace tgi::cuda
