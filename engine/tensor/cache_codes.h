// How a KV cache holds numbers in one byte each. f8e4m3: rounded to the nearest, without a scale
// (float8.h). int8: the key or value of one position and KV head are integers from -127 to 127
// times one scale, which depends on nothing else, so that it does not on how a text was cut into
// steps. What is no number stays none: the scale of a row that has one is none.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace tgi {

inline constexpr float kLargestInt8Code = 127.0F;

struct Int8Scale {
  float scale = 0.0F;
  float inverse = 0.0F;

  float code(float value) const {
    const float code = std::nearbyint(value * inverse);
    return std::isnan(code) ? 0.0F : std::clamp(code, -kLargestInt8Code, kLargestInt8Code);
  }
};

inline Int8Scale int8_scale(std::span<const float> row) {
  float largest = 0.0F;
  float sum = 0.0F;
  for (const float value : row) {
    largest = std::max(largest, std::fabs(value));
    sum += value * 0.0F;
  }
  const float scale = largest / kLargestInt8Code + sum;
  // Rows of next to nothing are nothing: their inverse would be infinite.
  if (scale < 0x1p-120F) return {};
  return {.scale = scale, .inverse = std::isfinite(scale) ? kLargestInt8Code / largest : 0.0F};
}

}  // namespace tgi
