// The rotation of a head, and what scales a query by its position.
#pragma once

#include <cmath>

#include "cuda/kernels/rows.h"
#include "cuda/kernels/types.cuh"

namespace tgi::cuda {

// Columns a (first) and b of pair i.
__device__ __forceinline__ int first_of_pair(const RopeTable& rope, int i) {
  return rope.interleaved ? 2 * i : i;
}
__device__ __forceinline__ int second_of_pair(const RopeTable& rope, int i) {
  return rope.interleaved ? 2 * i + 1 : i + rope.rotary_dim / 2;
}

__device__ __forceinline__ float scale_at(const PositionScale& scale, int32_t position) {
  if (scale.power != 0.0F) {
    const float spans =
        static_cast<float>(position + scale.offset) / static_cast<float>(scale.positions);
    return powf(1.0F + spans, scale.power);
  }
  const auto spans = static_cast<float>((position + scale.offset) / scale.positions);
  return 1.0F + scale.beta * logf(1.0F + spans);
}

// What the q of head h is multiplied by. `head_scales`: of QkvArgs.
__device__ __forceinline__ float query_factor(const PositionScale& scale,
                                              const float* __restrict__ head_scales,
                                              int num_heads,
                                              int h,
                                              int32_t position) {
  const float of_position = scale.is_on() ? scale_at(scale, position) : 1.0F;
  if (head_scales == nullptr) return of_position;
  const float logarithm = logf(1.0F + static_cast<float>(position));
  return of_position * (head_scales[h] * logarithm + head_scales[num_heads + h]);
}

// One warp rotates the first rotary_dim columns of `from`, multiplied by `scale`. `table`: the
// token's cosines, then sines. `to` may be `from`; no lane reads what another writes.
template <typename T>
__device__ __forceinline__ void rotate_head(
    const RopeTable& rope, const float* table, const T* from, T* to, float scale, int lane) {
  const int half = rope.rotary_dim / 2;
  for (int i = lane; i < half; i += 32) {
    const int first = first_of_pair(rope, i);
    const int second = second_of_pair(rope, i);
    const float x = to_float(from[first]) * scale;
    const float y = to_float(from[second]) * scale;
    to[first] = from_float<T>(x * table[i] - y * table[half + i]);
    to[second] = from_float<T>(y * table[i] + x * table[half + i]);
  }
}

}  // namespace tgi::cuda
