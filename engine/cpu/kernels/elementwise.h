// Norms, activations, rotary rotation and other work of one pass over a row. A sum over a row runs
// in 16 lanes side by side and ends in one fixed tree.
#pragma once

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/kernels/vector_math.h"

namespace tgi {

// Reads the row, adding it to the residual stream first where there is one, and sums f(x) over it.
template <typename V, typename F>
float sum_row(const float* x, int64_t cols, F f) {
  V total = V::zero();
  for (int64_t i = 0; i < cols; i += 16) {
    const auto valid = V::first_lanes(cols - i);
    total = total + V::select(valid, f(V::load_first(x + i, cols - i)), V::zero());
  }
  return total.sum();
}

template <typename V>
const float* add_residual(const NormRow& row) {
  if (row.residual == nullptr) return row.x;
  for (int64_t i = 0; i < row.cols; i += 16) {
    const int64_t left = row.cols - i;
    const V sum = V::fma(V::load_first(row.x + i, left), V::set1(row.x_multiplier),
                         V::load_first(row.residual + i, left));
    sum.store_first(row.residual + i, left);
  }
  return row.residual;
}

template <typename V>
void write_norm(const NormRow& row, const float* x, float mean, float inverse) {
  for (int64_t i = 0; i < row.cols; i += 16) {
    const int64_t left = row.cols - i;
    const V weight = V::load_first(row.weight + i, left);
    V y = (V::load_first(x + i, left) - V::set1(mean)) * V::set1(inverse) * weight;
    if (row.bias != nullptr) y = y + V::load_first(row.bias + i, left);
    y.store_first(row.out + i, left);
  }
}

template <typename V>
void rms_norm(const NormRow& row) {
  const float* x = add_residual<V>(row);
  const float squares = sum_row<V>(x, row.cols, [](V v) { return v * v; });
  const float mean_square = squares / static_cast<float>(row.cols);
  write_norm<V>(row, x, 0.0F, 1.0F / __builtin_sqrtf(mean_square + row.eps));
}

template <typename V>
void layer_norm(const NormRow& row) {
  const float* x = add_residual<V>(row);
  const auto count = static_cast<float>(row.cols);
  const float mean = sum_row<V>(x, row.cols, [](V v) { return v; }) / count;
  const float variance = sum_row<V>(x, row.cols,
                                    [mean](V v) {
                                      const V distance = v - V::set1(mean);
                                      return distance * distance;
                                    }) /
                         count;
  write_norm<V>(row, x, mean, 1.0F / __builtin_sqrtf(variance + row.eps));
}

template <typename V, Activation kKind>
V activate(V x) {
  const V one = V::set1(1.0F);
  if constexpr (kKind == Activation::kSilu) return x / (one + vector_exp(-x));
  if constexpr (kKind == Activation::kGelu) {
    return V::set1(0.5F) * x * (one + vector_erf(x * V::set1(0.70710678F)));
  }
  if constexpr (kKind == Activation::kGeluTanh) {
    const V cube = x * x * x;
    const V inner = V::set1(0.79788456F) * V::fma(V::set1(0.044715F), cube, x);
    return V::set1(0.5F) * x * (one + vector_tanh(inner));
  }
  const V positive = V::max(V::zero(), x);  // this way round NaN stays
  if constexpr (kKind == Activation::kReluSquared) return positive * positive;
  return positive;
}

template <typename V, Activation kKind, bool kGated>
void activation_row(const float* in, float* out, int64_t cols) {
  for (int64_t i = 0; i < cols; i += 16) {
    const int64_t left = cols - i;
    V y = activate<V, kKind>(V::load_first(in + i, left));
    if constexpr (kGated) y = y * V::load_first(in + cols + i, left);
    y.store_first(out + i, left);
  }
}

// The bounds stand first, so that what is not a number stays so.
template <typename V>
void limited_silu_row(const float* in, float* out, int64_t cols, const GateLimits& limits) {
  const V highest_gate = V::set1(limits.limit);
  const V highest = V::set1(limits.up_limit);
  const V lowest = V::set1(-limits.up_limit);
  for (int64_t i = 0; i < cols; i += 16) {
    const int64_t left = cols - i;
    const V gate = V::min(highest_gate, V::load_first(in + i, left));
    const V up = V::max(lowest, V::min(highest, V::load_first(in + cols + i, left)));
    const V bent = gate / (V::set1(1.0F) + vector_exp(-(gate * V::set1(limits.slope))));
    (bent * (up + V::set1(limits.up_offset))).store_first(out + i, left);
  }
}

// What is not a number stays so.
template <typename V>
void xielu_row(const float* in, float* out, int64_t cols, const XieluNumbers& numbers) {
  const V highest = V::set1(numbers.eps);
  for (int64_t i = 0; i < cols; i += 16) {
    const int64_t left = cols - i;
    const V x = V::load_first(in + i, left);
    const V held = V::min(highest, x);
    const V below = V::set1(numbers.alpha_n) * (vector_exp_less_tangent(held) + (held - x));
    const V above = V::set1(numbers.alpha_p) * (x * x);
    const V bent = V::select(V::less(V::zero(), x), above, below);
    V::fma(V::set1(numbers.beta), x, bent).store_first(out + i, left);
  }
}

template <typename V>
void add_rows(const float* x, const float* y, float y_multiplier, float* out, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) {
    const int64_t left = count - i;
    V::fma(V::load_first(y + i, left), V::set1(y_multiplier), V::load_first(x + i, left))
        .store_first(out + i, left);
  }
}

template <typename V>
void scale_and_cap(float* x, int64_t count, float scale, float cap) {
  for (int64_t i = 0; i < count; i += 16) {
    V y = V::load_first(x + i, count - i) * V::set1(scale);
    if (cap != 0.0F) y = V::set1(cap) * vector_tanh(y / V::set1(cap));
    y.store_first(x + i, count - i);
  }
}

template <typename V>
void rotate_half(float* head, const float* cos_sin, int64_t rotary_dim) {
  const int64_t half = rotary_dim / 2;
  for (int64_t i = 0; i < half; i += 16) {
    const int64_t left = half - i;
    const V x = V::load_first(head + i, left);
    const V y = V::load_first(head + half + i, left);
    const V cosine = V::load_first(cos_sin + i, left);
    const V sine = V::load_first(cos_sin + half + i, left);
    (x * cosine - y * sine).store_first(head + i, left);
    (y * cosine + x * sine).store_first(head + half + i, left);
  }
}

template <typename V>
void rotate_interleaved(float* head, const float* cos_sin, int64_t rotary_dim) {
  const int64_t half = rotary_dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const float x = head[2 * i];
    const float y = head[2 * i + 1];
    head[2 * i] = x * cos_sin[i] - y * cos_sin[half + i];
    head[2 * i + 1] = y * cos_sin[i] + x * cos_sin[half + i];
  }
}

template <typename V, V (*kFunction)(V)>
void map_array(const float* x, float* out, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) {
    kFunction(V::load_first(x + i, count - i)).store_first(out + i, count - i);
  }
}

}  // namespace tgi
