// The Weights of MatmulBlock (matmul_block.cuh) that a packed matrix is: codes of the next 64
// columns wait in registers and become numbers of T, times their scale and rounded once, on their
// way to shared memory. Each warp does a panel.
#pragma once

#include "cuda/kernels/matmul_block.cuh"
#include "cuda/kernels/packed_codes.cuh"

namespace tgi::cuda {

template <typename T, PackedCodes kCodes>
class PackedWeights {
  static constexpr int kUnits = kBlockDepth / kUnitCols;
  static_assert(kBlockOutputs / kPanelOutputs == kBlockThreads / 32);
  static_assert(units_of_chunk(kCodes) % kUnits == 0);

 public:
  __device__ __forceinline__ PackedWeights(const std::byte* w,
                                           const PackedShape& shape,
                                           int32_t first_output)
      : shape_(shape), lane_(static_cast<int>(threadIdx.x % 32)) {
    const auto warp = static_cast<int32_t>(threadIdx.x / 32);
    const int32_t panel = min(first_output / kPanelOutputs + warp, shape.num_panels - 1);
    panel_ = w + panel * shape.panel_bytes;
  }

  __device__ __forceinline__ void fetch(int32_t k) {
    if (k >= shape_.cols) return;
    constexpr int kChunkUnits = units_of_chunk(kCodes);
    const int32_t first_unit = k / kUnitCols;
    const std::byte* const from = panel_ +
                                  int64_t{first_unit / kChunkUnits} * kChunkBytes * kPanelOutputs +
                                  lane_ * 16 + first_unit % kChunkUnits * unit_bytes(kCodes);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      using Units = Vector<uint32_t, kUnits * unit_bytes(kCodes) / 4>;
      const auto units = *reinterpret_cast<const Units*>(from + half * 512);
      constexpr int kWords = unit_bytes(kCodes) / 4;
#pragma unroll
      for (int i = 0; i < kUnits * kWords; ++i) {
        codes_[half][i / kWords].words[i % kWords] = units.at[i];
      }
#pragma unroll
      for (int unit = 0; unit < kUnits; ++unit) {
        load_group(first_unit + unit, 0, half, scales_[half][unit], minima_[half][unit]);
      }
    }
  }

  __device__ __forceinline__ void put(int32_t k, std::byte* to) const {
    if (k >= shape_.cols) return;  // nobody multiplies with it
    using Rows = SharedRows<kBlockRowBytes>;
    const auto first_row = static_cast<int>(threadIdx.x) / 32 * kPanelOutputs + lane_ / 4;
    const int quad = lane_ % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int unit = 0; unit < kUnits; ++unit) {
        float values[8];
        unpack_floats(codes_[half][unit], shape_, values);
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          float scale = scales_[half][unit];
          float minimum = minima_[half][unit];
          // To wait for these here is better than to hold all of them.
          if (part == 1 && shape_.is_fine()) {
            load_group(k / kUnitCols + unit, part, half, scale, minimum);
          }
          Vector<T, 4> numbers;
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            numbers.at[i] = from_float<T>(scale * values[4 * part + i] + minimum);
          }
          const int offset = Rows::offset(first_row + 8 * half, 4 * unit + 2 * part + quad / 2);
          store(reinterpret_cast<T*>(to + offset + quad % 2 * 8), numbers);
        }
      }
    }
  }

 private:
  __device__ __forceinline__ void load_group(
      int32_t unit, int part, int half, float& scale, float& minimum) const {
    const int32_t group = shape_.group_of(unit, part);
    const int row = lane_ / 4 + 8 * half;
    scale = load_scale(panel_ + shape_.scales_at, shape_, group, row);
    if (!shape_.has_minima) return;
    minimum = load_minimum(panel_ + shape_.minima_at, shape_, group, row);
  }

  const PackedShape& shape_;  // of the kernel's parameters
  const int lane_;
  const std::byte* panel_;
  PackedUnit<kCodes> codes_[2][kUnits];
  float scales_[2][kUnits];
  float minima_[2][kUnits] = {};
};

}  // namespace tgi::cuda
