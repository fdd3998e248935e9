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
// `errors`: what each of the scales costs.
template <typename Round, typename Costs>
float least_error_int4_scale_at_once(float largest, Round round, Costs errors) {
  Int4Scales scales;
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = round(-largest / kInt4ScaleSteps[i]);
  const Int4Scales costs = errors(scales);
  float best = 0.0F;
  float least = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < scales.size(); ++i) {
    if (!(costs[i] < least)) continue;
    least = costs[i];
    best = scales[i];
  }
  return best;
}

// The same of costs that are told for one scale after the other.
template <typename Round, typename Cost>
float least_error_int4_scale(float largest, Round round, Cost error) {
  return least_error_int4_scale_at_once(largest, round, [&](const Int4Scales& scales) {
    Int4Scales costs;
    for (size_t i = 0; i < scales.size(); ++i) costs[i] = error(scales[i]);
    return costs;
  });
}

}  // namespace tgi
