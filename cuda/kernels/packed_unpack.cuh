// A packed matrix as plain numbers, for a library that multiplies those. A warp does a chunk of a
// panel; each lane writes four columns of a row at a time.
#pragma once

#include "cuda/kernels/packed_codes.cuh"

namespace tgi::cuda {

inline constexpr int kUnpackWarps = 8;

template <typename T, PackedCodes kCodes>
__global__ void __launch_bounds__(32 * kUnpackWarps)
    packed_unpack(const __grid_constant__ PackedShape shape,
                  const std::byte* w,
                  int32_t first_output,
                  int32_t num_outputs,
                  T* out,
                  int64_t out_stride) {
  constexpr int kUnits = units_of_chunk(kCodes);
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const auto chunk = static_cast<int32_t>(blockIdx.y * kUnpackWarps + threadIdx.x / 32);
  const auto panel_index = static_cast<int32_t>(blockIdx.x);
  const std::byte* const panel =
      w + int64_t{first_output / kPanelOutputs + panel_index} * shape.panel_bytes;
  PackedUnit<kCodes> codes[2][kUnits] = {};
  if (chunk < shape.num_chunks) load_codes(panel, chunk, codes);
  // Who reads what stands in `out` from before may still be at it.
  wait_for_previous_kernel();
  launch_next_kernel();
  if (chunk >= shape.num_chunks) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = lane / 4 + 8 * half;
    const int32_t output = panel_index * kPanelOutputs + row;
    if (output >= num_outputs) continue;
    T* const to = out + output * out_stride;
#pragma unroll
    for (int unit = 0; unit < kUnits; ++unit) {
      float values[8];
      unpack_floats(codes[half][unit], shape, values);
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const int32_t at_unit = chunk * kUnits + unit;
        const int32_t col = at_unit * kUnitCols + 16 * part + 4 * (lane % 4);
        if (col >= shape.cols) continue;
        const int32_t group = shape.group_of(at_unit, part);
        const float scale = load_scale(panel + shape.scales_at, shape, group, row);
        const float minimum =
            shape.has_minima ? load_minimum(panel + shape.minima_at, shape, group, row) : 0.0F;
        Vector<T, 4> numbers;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          numbers.at[i] = from_float<T>(scale * values[4 * part + i] + minimum);
        }
        store(to + col, numbers);
      }
    }
  }
}

}  // namespace tgi::cuda
