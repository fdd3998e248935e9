// Sixteen rows of a stored matrix into one int8 or int4 panel: a group of columns of a row at a
// time is scaled and rounded to the nearest integer. Scales are rounded to bf16 first, so that they
// add no error of their own. Done once, at load.
#pragma once

#include <limits>

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/kernels/pack.h"
#include "engine/cpu/panel_layout.h"
#include "engine/tensor/scale_search.h"

namespace tgi {

inline constexpr int64_t kMaxGroupSize = 256;

// The smallest bf16 of the same sign that is not nearer to 0; 0 stays.
template <typename V>
float widen_to_bf16(float scale) {
  uint32_t bits = 0;
  __builtin_memcpy(&bits, &scale, sizeof bits);
  bits = (bits + 0xFFFFU) & 0xFFFF0000U;
  __builtin_memcpy(&scale, &bits, sizeof scale);
  return scale;
}

template <typename V>
V round_clamped(V x, V inverse, float lowest, float highest) {
  const V shift = V::set1(0x1.8p23F);
  const V rounded = (x * inverse + shift) - shift;
  return V::max(V::min(rounded, V::set1(highest)), V::set1(lowest));
}

// The value of largest magnitude, with its sign: of equal ones the positive. NaN when there is a
// NaN or an infinity: a group that can't be rounded is NaN as a whole, so that it shows in the
// logits.
template <typename V>
float signed_largest(const float* x, int64_t count) {
  V high = V::zero();
  V low = V::zero();
  V rest = V::zero();
  for (int64_t i = 0; i < count; i += 16) {
    const V value = V::load(x + i);
    high = V::max(value, high);
    low = V::max(-value, low);
    rest = rest + (value - value);
  }
  if (__builtin_isnan(rest.sum())) return std::numeric_limits<float>::quiet_NaN();
  const float up = high.max_lane();
  const float down = low.max_lane();
  return down > up ? -down : up;
}

template <typename V>
struct QuantiseInt8 {
  static constexpr PanelType kType = PanelType::kInt8;
  static constexpr float kLowest = -127.0F;
  static constexpr float kHighest = 127.0F;

  static float scale(const float* x, int64_t count) {
    const float largest = signed_largest<V>(x, count);
    return widen_to_bf16<V>((largest < 0.0F ? -largest : largest) / 127.0F);
  }
};

// See least_error_int4_scale.
template <typename V>
struct QuantiseInt4 {
  static constexpr PanelType kType = PanelType::kInt4;
  static constexpr float kLowest = -8.0F;
  static constexpr float kHighest = 7.0F;

  static float scale(const float* x, int64_t count) {
    const float largest = signed_largest<V>(x, count);
    if (__builtin_isnan(largest)) return largest;
    return least_error_int4_scale(
        largest, [](float scale) { return widen_to_bf16<V>(scale); },
        [&](float scale) { return squared_error(x, count, scale); });
  }

 private:
  static float squared_error(const float* x, int64_t count, float scale) {
    const V step = V::set1(scale);
    const V inverse = V::set1(scale == 0.0F ? 0.0F : 1.0F / scale);
    V sum = V::zero();
    for (int64_t i = 0; i < count; i += 16) {
      const V value = V::load(x + i);
      const V error = V::fma(-round_clamped(value, inverse, kLowest, kHighest), step, value);
      sum = V::fma(error, error, sum);
    }
    return sum.sum();
  }
};

// Rounds `count` (a multiple of 16) values to integers, stored + the panel's offset.
template <typename V, typename Quantise>
void round_group(const float* x, int64_t count, float scale, std::byte* out) {
  constexpr float kOffset = Quantise::kType == PanelType::kInt8 ? 128.0F : 8.0F;
  const V inverse = V::set1(scale == 0.0F ? 0.0F : 1.0F / scale);
  for (int64_t i = 0; i < count; i += 16) {
    const V q = round_clamped(V::load(x + i), inverse, Quantise::kLowest, Quantise::kHighest);
    (q + V::set1(0x1.8p23F + kOffset)).store_low_bytes(out + i);
  }
}

// Puts one row's group into the lines that begin at `lines`.
template <typename V, PanelType kType>
void spread_row(const std::byte* q, int64_t count, int64_t row, std::byte* lines) {
  constexpr int64_t kLineCols = kType == PanelType::kInt8 ? 4 : 8;
  for (int64_t i = 0; i < count; i += kLineCols) {
    uint32_t word = 0;
    __builtin_memcpy(&word, q + i, 4);
    if constexpr (kType == PanelType::kInt4) {
      uint32_t upper = 0;
      __builtin_memcpy(&upper, q + i + 4, 4);
      word |= upper << 4;
    }
    __builtin_memcpy(lines + i / kLineCols * 64 + row * 4, &word, 4);
  }
}

template <typename V, typename Quantise>
void quantise_panel(const PackPanel& panel) {
  const PanelLayout& layout = panel.layout;
  const int64_t group_size = layout.group_size;
  alignas(64) float values[kMaxGroupSize];
  std::byte quantised[kMaxGroupSize];
  for (int64_t group = 0; group < layout.num_groups(); ++group) {
    const int64_t begin = group * group_size;
    for (int64_t row = 0; row < kPanelRows; ++row) {
      for (int64_t i = 0; i < group_size; i += kPackCols) {
        alignas(64) std::byte staged[kPackCols * 4];
        const int64_t left = layout.cols - begin - i;
        const int64_t count = left < kPackCols ? (left > 0 ? left : 0) : kPackCols;
        stage_row<V, DType::kF32>(panel.rows[static_cast<size_t>(row)], begin + i, count, staged);
        const int64_t kept = group_size - i < kPackCols ? group_size - i : kPackCols;
        __builtin_memcpy(values + i, staged, static_cast<size_t>(kept) * 4);
      }
      const float scale = Quantise::scale(values, group_size);
      round_group<V, Quantise>(values, group_size, scale, quantised);
      spread_row<V, Quantise::kType>(quantised, group_size, row,
                                     panel.out + layout.offset(0, begin));
      uint32_t bits = 0;
      __builtin_memcpy(&bits, &scale, sizeof bits);
      const auto half = static_cast<uint16_t>(bits >> 16);
      __builtin_memcpy(panel.out + layout.scale_offset(row, group), &half, sizeof half);
    }
  }
}

}  // namespace tgi
