// What a CUDA block of the kernels for few rows does with a packed matrix: one panel of 16 rows of
// w times up to 64 rows of x, as matmul_tile.cuh does with a dense one. Its warps take turns along
// the chunks of the panel. Integers go to the tensor cores as they are; what an mma gives for the
// columns of one group is multiplied by the group's scale and added up in f32. Minima are
// multiplied by the sum of x over their group, which an mma with ones gives.
#pragma once

#include <type_traits>

#include "cuda/kernels/matmul_tile.cuh"
#include "cuda/kernels/packed_codes.cuh"

namespace tgi::cuda {

// What belongs to a group of a lane's two rows of w.
struct GroupNumbers {
  float scales[2];
  float minima[2];
};

__device__ __forceinline__ GroupNumbers load_group(const std::byte* panel,
                                                   const PackedShape& shape,
                                                   int32_t unit,
                                                   int part) {
  const int32_t group = shape.group_of(unit, part);
  GroupNumbers out = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = static_cast<int>(threadIdx.x % 32 / 4) + 8 * half;
    out.scales[half] = load_scale(panel + shape.scales_at(), shape, group, row);
    if (!shape.has_minima) continue;
    out.minima[half] = load_minimum(panel + shape.minima_at(), shape, group, row);
  }
  return out;
}

// What one lane has of a chunk: two rows of w, 8 of 32 columns each. kFine: groups of 16 columns,
// else none ends within 32. kHolds: with what belongs to the groups, so that nobody waits for it;
// with many rows of x, or small groups, there are no registers for that.
template <PackedCodes kCodes, bool kFine, bool kHolds>
struct PackedChunk {
  static constexpr int kUnits = units_of_chunk(kCodes);
  static constexpr int kParts = kFine ? 2 : 1;
  PackedUnit<kCodes> codes[2][kUnits];
  GroupNumbers groups[kHolds ? kUnits : 1][kParts];
};

template <typename Chunk, PackedCodes kCodes, bool kHolds>
__device__ __forceinline__ Chunk load_chunk(const std::byte* panel,
                                            const PackedShape& shape,
                                            int32_t chunk) {
  Chunk out = {};
  if (chunk >= shape.num_chunks()) return out;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint4 codes = load_streaming(panel + int64_t{chunk} * kChunkBytes * kPanelOutputs +
                                       half * 512 + threadIdx.x % 32 * 16);
    const uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
    constexpr int kWords = unit_bytes(kCodes) / 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) out.codes[half][i / kWords].words[i % kWords] = words[i];
  }
  if constexpr (kHolds) {
#pragma unroll
    for (int unit = 0; unit < Chunk::kUnits; ++unit) {
#pragma unroll
      for (int part = 0; part < Chunk::kParts; ++part) {
        out.groups[unit][part] = load_group(panel, shape, chunk * Chunk::kUnits + unit, part);
      }
    }
  }
  return out;
}

// A lane's part of a unit of a row of x: columns 4t.. and 16 + 4t.. of it.
struct UnitOfX {
  uint2 halves[2];
};

template <typename T>
__device__ __forceinline__ UnitOfX load_unit(const T* from, int32_t col, int32_t cols) {
  UnitOfX out;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int32_t at = col + 16 * half;
    out.halves[half] = at < cols ? *reinterpret_cast<const uint2*>(from + at) : make_uint2(0, 0);
  }
  return out;
}

// sums += scale * (what the columns of one group give) + minimum * (the sum of x over them).
// Rounded once each, so that kernels of all numbers of rows have the same bits.
__device__ __forceinline__ void add_group(const float (&products)[4],
                                          const float (&sums_of_x)[4],
                                          const GroupNumbers& group,
                                          bool has_minima,
                                          float (&sums)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[i] = fmaf(group.scales[i / 2], products[i], sums[i]);
  if (!has_minima) return;
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[i] = fmaf(group.minima[i / 2], sums_of_x[i], sums[i]);
}

// row_of_x(i) is where row i of x is; those past num_rows are computed from the last one and not
// written. begin() is called when the first weights are on their way, and before x is read.
// write(row, output, sum) for what there is.
template <typename T,
          PackedCodes kCodes,
          bool kFine,
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
  constexpr bool kHolds = kTiles == 1 && !kFine;
  using Chunk = PackedChunk<kCodes, kFine, kHolds>;
  const int group = static_cast<int>(threadIdx.x % 32 / 4);
  const int quad = static_cast<int>(threadIdx.x % 4);
  const std::byte* const panel = w + panel_index * shape.panel_bytes();
  const T* x_rows[kTiles];
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    x_rows[tile] = row_of_x(min(tile * kStreamTileRows + group, num_rows - 1));
  }
  constexpr uint32_t kOne = std::is_same_v<T, bf16> ? 0x3f803f80U : 0x3c003c00U;
  constexpr uint32_t kOnes[4] = {kOne, kOne, kOne, kOne};
  float sums[kTiles][4] = {};

  auto chunk = static_cast<int32_t>(threadIdx.x / 32);
  Chunk next = load_chunk<Chunk, kCodes, kHolds>(panel, shape, chunk);
  begin();
  while (chunk < shape.num_chunks()) {
    const Chunk now = next;
    const int32_t first_unit = chunk * Chunk::kUnits;
    chunk += kStreamWarps;
    next = load_chunk<Chunk, kCodes, kHolds>(panel, shape, chunk);
#pragma unroll
    for (int unit = 0; unit < Chunk::kUnits; ++unit) {
      const int32_t col = (first_unit + unit) * kUnitCols + 4 * quad;
      uint32_t low[4];
      uint32_t high[4];
      GroupNumbers groups[Chunk::kParts];
#pragma unroll
      for (int part = 0; part < Chunk::kParts; ++part) {
        if constexpr (kHolds) {
          groups[part] = now.groups[unit][part];
        } else {
          groups[part] = load_group(panel, shape, first_unit + unit, part);
        }
      }
      unpack_pairs<T>(now.codes[0][unit], shape, low);
      unpack_pairs<T>(now.codes[1][unit], shape, high);
      const uint32_t from_w[2][4] = {{low[0], high[0], low[1], high[1]},
                                     {low[2], high[2], low[3], high[3]}};
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const UnitOfX x = load_unit(x_rows[tile], col, shape.cols);
        float products[4] = {};
        float sums_of_x[4] = {};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const uint32_t from_x[2] = {x.halves[half].x, x.halves[half].y};
          mma_16x8x16<T>(products, from_w[half], from_x);
          if (shape.has_minima) mma_16x8x16<T>(sums_of_x, kOnes, from_x);
          if (!kFine && half == 0) continue;
          add_group(products, sums_of_x, groups[kFine ? half : 0], shape.has_minima, sums[tile]);
          if (half == 1) continue;
#pragma unroll
          for (int i = 0; i < 4; ++i) products[i] = sums_of_x[i] = 0.0F;
        }
      }
    }
  }
  add_up_warps<kTiles>(sums, panel_index * kPanelOutputs, shape.outputs, bias, num_rows, write);
}

}  // namespace tgi::cuda
