// See rounded_row.h.
#include "cuda/rounded_row.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "engine/tensor/random_weights.h"
#include "engine/tensor/scale_search.h"
#include "engine/tensor/weight_element.h"

namespace tgi::cuda {
namespace {

float element_of(const WeightPart& part, int64_t row, int64_t col) {
  if (!part.random) return weight_element(part, row, col);
  return random_weight(part.dtype, part.random->key,
                       part.random->first_element + row * part.row_stride + col * part.col_stride);
}

// The nearest bf16 that is not nearer to 0.
float widen_to_bf16(float scale) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(scale) + 0xffffU) & 0xffff0000U);
}

float inverse_of(float scale) {
  return scale == 0.0F ? 0.0F : 1.0F / scale;
}

// A number that is far from 2^22 added to this has no bits left below the point: to nearest, ties
// to even, as std::nearbyint, which no compiler turns into vector code.
constexpr float kRounds = 12582912.0F;

float rounded(float value, float inverse, float lowest, float highest) {
  return std::clamp((value * inverse + kRounds) - kRounds, lowest, highest);
}

// With its sign, of equal ones the positive; NaN when a number is not finite.
float signed_largest(std::span<const float> values) {
  float largest = 0.0F;
  for (const float value : values) {
    if (!std::isfinite(value)) return std::numeric_limits<float>::quiet_NaN();
    const float size = std::fabs(value);
    if (size > std::fabs(largest) || (size == std::fabs(largest) && value > 0)) largest = value;
  }
  return largest;
}

float int4_scale(std::span<const float> values, float largest) {
  return least_error_int4_scale_at_once(largest, widen_to_bf16, [&](const Int4Scales& scales) {
    Int4Scales inverses;
    for (size_t i = 0; i < scales.size(); ++i) inverses[i] = inverse_of(scales[i]);
    Int4Scales sums = {};
    for (const float value : values) {
      for (size_t i = 0; i < scales.size(); ++i) {
        const float error = value - rounded(value, inverses[i], -8.0F, 7.0F) * scales[i];
        sums[i] += error * error;
      }
    }
    return sums;
  });
}

}  // namespace

void round_row(const WeightPart& part, int64_t row, int bits, int32_t group_size, RoundedRow& out) {
  out.codes.assign(static_cast<size_t>(part.cols), 0);
  out.scales.clear();
  const float highest = bits == 8 ? 127.0F : 7.0F;
  const float lowest = bits == 8 ? -127.0F : -8.0F;
  std::vector<float> values(static_cast<size_t>(group_size));
  for (int64_t begin = 0; begin < part.cols; begin += group_size) {
    const auto count = static_cast<size_t>(std::min<int64_t>(group_size, part.cols - begin));
    for (size_t i = 0; i < count; ++i) {
      values[i] = element_of(part, row, begin + static_cast<int64_t>(i));
    }
    const std::span<const float> group(values.data(), count);
    const float largest = signed_largest(group);
    if (std::isnan(largest)) {
      out.scales.push_back(largest);
      continue;
    }
    const float scale =
        bits == 8 ? widen_to_bf16(std::fabs(largest) / 127.0F) : int4_scale(group, largest);
    const float inverse = inverse_of(scale);
    for (size_t i = 0; i < count; ++i) {
      out.codes[static_cast<size_t>(begin) + i] =
          static_cast<int8_t>(rounded(values[i], inverse, lowest, highest));
    }
    out.scales.push_back(scale);
  }
}

}  // namespace tgi::cuda
