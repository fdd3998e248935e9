// Which scale a group of numbers gets that is rounded to 4 bits: shared by the loader's kernels
// (engine/cpu/kernels/quantise.h) and by the quantisers that write checkpoints (engine/quantize).
#pragma once

#include <array>
#include <cstddef>
#include <limits>

namespace tgi {

inline constexpr std::array kInt4ScaleSteps = {8.0F, 7.6F, 8.4F, 8.8F, 9.2F, 9.6F, 10.0F, 7.2F};
using Int4Scales = std::array<float, kInt4ScaleSteps.size()>;

// The scale with the least error among a few, the first of which just holds the largest value: it
// often pays to cut the largest value off. The range of a code reaches one step further below zero
// than above, so the scale has the sign that puts the largest value there.
//
// `largest`: the value of largest magnitude, with its sign. `round`: to what a scale is stored as.
// `error`: what a scale costs.
template <typename Round, typename Cost>
float least_error_int4_scale(float largest, Round round, Cost error) {
  float best = 0.0F;
  float least = std::numeric_limits<float>::infinity();
  for (const float steps : kInt4ScaleSteps) {
    const float scale = round(-largest / steps);
    const float cost = error(scale);
    if (cost < least) {
      least = cost;
      best = scale;
    }
  }
  return best;
}

// The same of costs that are told for all scales at once.
template <typename Round, typename Costs>
float least_error_int4_scale_at_once(float largest, Round round, Costs errors) {
  Int4Scales scales;
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = round(-largest / kInt4ScaleSteps[i]);
  const Int4Scales costs = errors(scales);
  size_t next = 0;
  return least_error_int4_scale(
      largest, [&](float /*unrounded*/) { return scales[next]; },
      [&](float /*scale*/) { return costs[next++]; });
}

}  // namespace tgi
