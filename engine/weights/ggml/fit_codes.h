// Choosing the codes of a block: which scale, or scale and minimum, loses least of so many values.
//
// A code is what a Codes type below snaps a number to. The loss of a value is weight * error^2. All
// loops run over lanes that are summed at the end, so that they become vector instructions without
// leave to reorder sums: the same bits on every machine.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "engine/tensor/half.h"

namespace tgi {

inline constexpr int kFitLanes = 8;
inline constexpr float kLargestHalf = 65504.0F;

// REQUIRES: |value| < 2^22
constexpr float to_nearest(float value) {
  constexpr float kShift = 12582912.0F;  // 1.5 * 2^23
  return (value + kShift) - kShift;
}

constexpr float as_half(float value) {
  return f16_to_f32(f32_to_f16(std::clamp(value, -kLargestHalf, kLargestHalf)));
}

// Values below it are nothing in any of the formats.
inline constexpr float kSmallestValue = 1e-25F;

// 0 for a scale with which all codes are.
constexpr float inverse_of(float scale) {
  constexpr float kSmallestScale = 1e-30F;
  return scale > -kSmallestScale && scale < kSmallestScale ? 0.0F : 1.0F / scale;
}

// Whole numbers from kLowest to kHighest.
template <int kLowest, int kHighest>
struct IntegerCodes {
  static constexpr float kEnds[] = {kLowest, kHighest};
  static float snap(float value) {
    constexpr float kMost = 4096.0F;  // of what to_nearest takes, more than any code
    const float held = std::min(std::max(value, -kMost), kMost);
    return std::min(std::max(to_nearest(held), static_cast<float>(kLowest)),
                    static_cast<float>(kHighest));
  }
};

// Those of a table, ascending.
template <const std::array<float, 16>& kTable>
struct TableCodes {
  static constexpr float kEnds[] = {kTable.front(), kTable.back()};
  static float snap(float value) {
    float code = kTable[0];
    for (size_t i = 1; i < kTable.size(); ++i) {
      code += value > (kTable[i - 1] + kTable[i]) / 2 ? kTable[i] - kTable[i - 1] : 0.0F;
    }
    return code;
  }
};

// Sums over kFitLanes, of kCount kinds.
template <int kCount>
struct LaneSums {
  float lanes[kCount][kFitLanes] = {};
  float sum(int kind) const {
    float out = 0.0F;
    for (const float lane : lanes[kind]) out += lane;
    return out;
  }
};

// sum w * (x + minimum - scale * code)^2 with the codes that are nearest.
template <typename Codes, int kCount>
float loss_of(const float* x, const float* w, float scale, float minimum) {
  const float inverse = inverse_of(scale);
  LaneSums<1> sums;
  for (int i = 0; i < kCount; i += kFitLanes) {
    for (int lane = 0; lane < kFitLanes; ++lane) {
      const float value = x[i + lane] + minimum;
      const float error = value - scale * Codes::snap(value * inverse);
      sums.lanes[0][lane] += w[i + lane] * error * error;
    }
  }
  return sums.sum(0);
}

// The sums from which the best scale of given codes follows: of w * x * code, and of w * code^2.
struct ScaleSums {
  float products = 0;
  float squares = 0;
  float gain() const { return squares > 0.0F ? products / squares * products : 0.0F; }
  float scale() const { return squares > 0.0F ? products / squares : 0.0F; }
};

template <typename Codes, int kCount>
ScaleSums sums_at(const float* x, const float* w, float inverse) {
  LaneSums<2> sums;
  for (int i = 0; i < kCount; i += kFitLanes) {
    for (int lane = 0; lane < kFitLanes; ++lane) {
      const float code = Codes::snap(x[i + lane] * inverse);
      const float weighed = w[i + lane] * code;
      sums.lanes[0][lane] += weighed * x[i + lane];
      sums.lanes[1][lane] += weighed * code;
    }
  }
  return {.products = sums.sum(0), .squares = sums.sum(1)};
}

template <int kCount>
float largest_of(const float* x) {
  float largest = 0.0F;
  for (int i = 0; i < kCount; ++i) {
    if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
  }
  return largest;
}

// The scale with the least loss among those that put the largest value near one of the ends of the
// codes. 0 when all values are 0.
template <typename Codes, int kCount>
float fit_scale(const float* x, const float* w) {
  constexpr int kSteps = 9;
  constexpr int kRounds = 2;
  const float largest = largest_of<kCount>(x);
  if (std::fabs(largest) < kSmallestValue) return 0.0F;
  // Steps of about a twentieth of the end for 4 bits, a sixtieth for 8.
  ScaleSums best;
  for (const float end : Codes::kEnds) {
    const float step = std::max(std::fabs(end) / 64.0F, std::fabs(end) > 64.0F ? 0.0F : 0.1F);
    for (int i = -kSteps; i <= kSteps; ++i) {
      const float to = end + step * static_cast<float>(i);
      if (to == 0.0F) continue;
      const ScaleSums sums = sums_at<Codes, kCount>(x, w, to / largest);
      if (sums.gain() > best.gain()) best = sums;
    }
  }
  for (int round = 0; round < kRounds && best.scale() != 0.0F; ++round) {
    const ScaleSums sums = sums_at<Codes, kCount>(x, w, 1.0F / best.scale());
    if (sums.gain() <= best.gain()) break;
    best = sums;
  }
  return best.scale();
}

// What an error of each value of a block counts, see encode_blocks.h.
template <int kCount>
void weigh(const float* x, const float* importance, float* w) {
  constexpr float kLeast = 1e-30F;  // so that no block is without weight
  LaneSums<1> squares;
  for (int i = 0; i < kCount; i += kFitLanes) {
    for (int lane = 0; lane < kFitLanes; ++lane) {
      squares.lanes[0][lane] += x[i + lane] * x[i + lane];
    }
  }
  const float mean = squares.sum(0) / static_cast<float>(kCount);
  for (int i = 0; i < kCount; ++i) {
    const float counts = importance == nullptr ? 1.0F : importance[i];
    w[i] = std::max(counts * std::sqrt(mean + x[i] * x[i]), kLeast);
  }
}

// The codes that are nearest.
template <typename Codes, int kCount>
void choose_codes(const float* x, float scale, float minimum, int8_t* codes) {
  const float inverse = inverse_of(scale);
  for (int i = 0; i < kCount; ++i) {
    codes[i] = static_cast<int8_t>(Codes::snap((x[i] + minimum) * inverse));
  }
}

// value = scale * code - minimum.
struct ScaleAndMinimum {
  float scale = 0;
  float minimum = 0;
};

// The best of both for given codes; a minimum below 0 where `may_be_negative`.
template <typename Codes, int kCount>
ScaleAndMinimum solve_at(
    const float* x, const float* w, const ScaleAndMinimum& at, bool may_be_negative, float& loss) {
  LaneSums<6> sums;
  const float inverse = inverse_of(at.scale);
  for (int i = 0; i < kCount; i += kFitLanes) {
    for (int lane = 0; lane < kFitLanes; ++lane) {
      const float value = x[i + lane];
      const float weight = w[i + lane];
      const float code = Codes::snap((value + at.minimum) * inverse);
      sums.lanes[0][lane] += weight;
      sums.lanes[1][lane] += weight * value;
      sums.lanes[2][lane] += weight * code;
      sums.lanes[3][lane] += weight * code * code;
      sums.lanes[4][lane] += weight * code * value;
      sums.lanes[5][lane] += weight * value * value;
    }
  }
  const double w1 = sums.sum(0);
  const double wx = sums.sum(1);
  const double wq = sums.sum(2);
  const double wqq = sums.sum(3);
  const double wqx = sums.sum(4);
  const double determinant = w1 * wqq - wq * wq;
  double scale = 0;
  double added = 0;
  if (determinant > 0) {
    scale = (w1 * wqx - wx * wq) / determinant;
    added = (wqq * wx - wq * wqx) / determinant;
  }
  if (determinant <= 0 || (added > 0 && !may_be_negative)) {
    added = determinant <= 0 && may_be_negative && w1 > 0 ? wx / w1 : 0.0;
    scale = wqq > 0 && added == 0.0 ? wqx / wqq : 0.0;
  }
  loss = static_cast<float>(sums.sum(5) - 2 * scale * wqx - 2 * added * wx + scale * scale * wqq +
                            2 * scale * added * wq + added * added * w1);
  return {.scale = static_cast<float>(scale), .minimum = static_cast<float>(-added)};
}

// REQUIRES: the lowest of the codes is 0.
template <typename Codes, int kCount>
ScaleAndMinimum fit_scale_and_minimum(const float* x, const float* w, bool may_be_negative) {
  constexpr int kSteps = 20;
  constexpr int kRounds = 2;
  float lowest = x[0];
  float highest = x[0];
  for (int i = 1; i < kCount; ++i) {
    lowest = std::min(lowest, x[i]);
    highest = std::max(highest, x[i]);
  }
  if (!may_be_negative) lowest = std::min(lowest, 0.0F);
  const float range = highest - lowest;
  if (range < kSmallestValue) return {.scale = 0.0F, .minimum = -lowest};
  const float end = Codes::kEnds[1];
  ScaleAndMinimum best;
  float least = -1.0F;
  const auto consider = [&](const ScaleAndMinimum& at) {
    float loss = 0.0F;
    const ScaleAndMinimum fitted = solve_at<Codes, kCount>(x, w, at, may_be_negative, loss);
    const bool is_better = fitted.scale > 0.0F && (least < 0.0F || loss < least);
    if (is_better) {
      best = fitted;
      least = loss;
    }
    return is_better;
  };
  for (int i = 0; i <= kSteps; ++i) {
    const float codes = end - 1.0F + 0.1F * static_cast<float>(i);
    consider({.scale = range / codes, .minimum = -lowest});
  }
  for (int round = 0; round < kRounds && consider(best); ++round) {
  }
  return best;
}

}  // namespace tgi
