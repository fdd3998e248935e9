// A chunk of a panel of a packed matrix in the registers of a warp, and its product with rows of x,
// as the kernels for up to 64 rows have it. Integers go to the tensor cores as they are; what mma
// give for the columns of one group is multiplied by the group's scale and added up in f32. Minima
// are multiplied by the sum of x over their group, which an mma with ones gives.
//
// Scales and minima come with the codes of their chunk, each by one lane and as they are stored, so
// that nobody waits for them; the lanes that need them have them shuffled.
#pragma once

#include <type_traits>

#include "cuda/kernels/matmul_tile.cuh"
#include "cuda/kernels/packed_codes.cuh"

namespace tgi::cuda {

// What there is beside the codes: minima and factors cost registers, which a matrix without them
// need not give.
enum class PackedNumbers : uint8_t { kScales, kAny };

// What a lane has of a chunk: two rows of w, 8 of 32 columns each, and of one row the numbers of
// every second group.
template <PackedCodes kCodes, bool kFine, PackedNumbers kNumbers>
struct PackedChunk {
  static constexpr bool kAny = kNumbers == PackedNumbers::kAny;
  static constexpr bool kIsFine = kFine;
  static constexpr int kUnits = units_of_chunk(kCodes);
  static constexpr int kLoads = kUnits * (kFine ? 2 : 1) * kPanelOutputs / 32;
  PackedUnit<kCodes> codes[2][kUnits];
  uint32_t scales[kLoads];
  uint32_t minima[kAny ? kLoads : 1];
  uint32_t scale_factors[kAny ? kLoads : 1];
  uint32_t minimum_factors[kAny ? kLoads : 1];
};

template <typename Chunk>
__device__ __forceinline__ void load_numbers(const std::byte* panel,
                                             const PackedShape& shape,
                                             int32_t chunk,
                                             Chunk& out) {
  const int32_t first_unit = chunk * Chunk::kUnits;
  const int32_t first = Chunk::kIsFine ? 2 * first_unit : shape.coarse_group_of(first_unit);
  const std::byte* const scales = panel + shape.scales_at;
  const std::byte* const minima = panel + shape.minima_at;
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const int row = lane % kPanelOutputs;
#pragma unroll
  for (int i = 0; i < Chunk::kLoads; ++i) {
    // Where there are fewer, the last for two: the same line is read once.
    const int32_t of_chunk = min(2 * i + lane / kPanelOutputs, shape.groups_of_chunk - 1);
    const int32_t group = min(first + of_chunk, shape.num_groups - 1);
    out.scales[i] = load_stored(scales, shape, group, row);
    if constexpr (Chunk::kAny) {
      const bool has_factors = shape.scales == PackedScales::kFactors;
      if (has_factors) out.scale_factors[i] = load_factor(scales, shape, group, row);
      if (!shape.has_minima) continue;
      out.minima[i] = load_stored(minima, shape, group, row);
      if (has_factors) out.minimum_factors[i] = load_factor(minima, shape, group, row);
    }
  }
}

template <typename Chunk>
__device__ __forceinline__ Chunk load_chunk(const std::byte* panel,
                                            const PackedShape& shape,
                                            int32_t chunk) {
  Chunk out = {};
  if (chunk >= shape.num_chunks) return out;
  load_codes(panel, chunk, out.codes);
  load_numbers(panel, shape, chunk, out);
  return out;
}

// Of what the lanes brought of a chunk: what belongs to a lane's two rows of w in one group.
struct GroupNumbers {
  float of_rows[2];
};

template <int kLoads>
__device__ __forceinline__ GroupNumbers numbers_of_group(const float (&brought)[kLoads],
                                                         int32_t group_in_chunk) {
  // By selection: an index that is not a constant would put them into memory.
  float mine = brought[0];
  if constexpr (kLoads > 1) mine = group_in_chunk >= 2 ? brought[1] : mine;
  if constexpr (kLoads > 2) mine = group_in_chunk >= 4 ? brought[2] : mine;
  if constexpr (kLoads > 3) mine = group_in_chunk >= 6 ? brought[3] : mine;
  static_assert(kLoads <= 4);
  const int from = group_in_chunk % 2 * kPanelOutputs + static_cast<int>(threadIdx.x % 32 / 4);
  return {{__shfl_sync(~0U, mine, from), __shfl_sync(~0U, mine, from + 8)}};
}

__device__ __forceinline__ void add_scaled(const float (&products)[4],
                                           const GroupNumbers& numbers,
                                           float (&sums)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[i] = fmaf(numbers.of_rows[i / 2], products[i], sums[i]);
}

// sums += the chunk that begins at unit first_unit, times x. load_x(tile, unit, half): four columns
// of a lane's row of a tile of x: 32 * (first_unit + unit) + 16 * half + 4 * quad and on, 0 past
// the end.
template <typename T, int kTiles, typename Chunk, typename LoadX>
__device__ __forceinline__ void multiply_chunk(const PackedShape& shape,
                                               const Chunk& chunk,
                                               int32_t first_unit,
                                               LoadX load_x,
                                               float (&sums)[kTiles][4]) {
  constexpr bool kFine = Chunk::kIsFine;
  constexpr int kParts = kFine ? 2 : 1;
  constexpr uint32_t kOne = std::is_same_v<T, bf16> ? 0x3f803f80U : 0x3c003c00U;
  constexpr uint32_t kOnes[4] = {kOne, kOne, kOne, kOne};
  const int row = static_cast<int>(threadIdx.x % kPanelOutputs);  // whose numbers it brought
  const bool has_minima = Chunk::kAny && shape.has_minima;
  const int32_t first_group = shape.coarse_group_of(first_unit);
  float scales[Chunk::kLoads];
  float minima[Chunk::kLoads] = {};
#pragma unroll
  for (int i = 0; i < Chunk::kLoads; ++i) {
    if constexpr (Chunk::kAny) {
      scales[i] = stored_value(chunk.scales[i], chunk.scale_factors[i], shape, row);
      minima[i] = stored_minimum(chunk.minima[i], chunk.minimum_factors[i], shape, row);
    } else {
      scales[i] = stored_value(chunk.scales[i], shape, row);
    }
  }
  float products[kTiles][4] = {};
#pragma unroll
  for (int unit = 0; unit < Chunk::kUnits; ++unit) {
    uint32_t low[4];
    uint32_t high[4];
    unpack_pairs<T>(chunk.codes[0][unit], shape, low);
    unpack_pairs<T>(chunk.codes[1][unit], shape, high);
    const uint32_t from_w[2][4] = {{low[0], high[0], low[1], high[1]},
                                   {low[2], high[2], low[3], high[3]}};
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int32_t of_chunk =
          kFine ? 2 * unit + part : shape.coarse_group_of(first_unit + unit) - first_group;
      const bool is_last = kFine || ((unit + 1) & (shape.units_together - 1)) == 0;
      GroupNumbers minimum = {};
      if (has_minima) minimum = numbers_of_group(minima, of_chunk);
      GroupNumbers scale = {};
      if (is_last) scale = numbers_of_group(scales, of_chunk);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        float sums_of_x[4] = {};
#pragma unroll
        for (int half = kFine ? part : 0; half < (kFine ? part + 1 : 2); ++half) {
          const uint2 pair = load_x(tile, unit, half);
          const uint32_t from_x[2] = {pair.x, pair.y};
          mma_16x8x16<T>(products[tile], from_w[half], from_x);
          if (has_minima) mma_16x8x16<T>(sums_of_x, kOnes, from_x);
        }
        if (has_minima) add_scaled(sums_of_x, minimum, sums[tile]);
        if (!is_last) continue;
        add_scaled(products[tile], scale, sums[tile]);
#pragma unroll
        for (int i = 0; i < 4; ++i) products[tile][i] = 0.0F;
      }
    }
  }
}

}  // namespace tgi::cuda
