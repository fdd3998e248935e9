// Kernels of engine/device/stream_ops.h, for one row. Sums run as in elementwise.h; those over the
// few streams run in their order.
#pragma once

#include "engine/cpu/kernels/elementwise.h"
#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/kernels/state.h"

namespace tgi {

template <typename V>
void stream_coefficients(const RoutedRow& routing, int64_t num_coefficients, float* out) {
  static_assert(kMaxStreams <= 16);
  float routed[16];
  const V scaled = V::load_first(routing.routed, routing.count) * V::set1(routing.scale);
  vector_tanh(scaled).store_first(routed, routing.count);
  for (int64_t i = 0; i < num_coefficients; ++i) {
    float sum = 0.0F;
    for (int32_t k = 0; k < routing.count; ++k) {
      sum += routing.matrix[i * routing.count + k] * routed[k];
    }
    out[i] = sum;
  }
}

template <typename V>
void predict_streams(const StreamsRow& row) {
  const int32_t count = row.routing.count;
  float coefficients[kMaxStreams * kMaxStreams];
  stream_coefficients<V>(row.routing, int64_t{count} * count, coefficients);
  for (int64_t c = 0; c < row.cols; c += 16) {
    const int64_t left = row.cols - c;
    V before[kMaxStreams];
    for (int32_t j = 0; j < count; ++j) {
      before[j] = V::load_first(row.streams + j * row.cols + c, left);
    }
    for (int32_t i = 0; i < count; ++i) {
      V sum = V::set1(coefficients[i * count]) * before[0];
      for (int32_t j = 1; j < count; ++j) {
        sum = V::fma(V::set1(coefficients[i * count + j]), before[j], sum);
      }
      (sum + before[i]).store_first(row.streams + i * row.cols + c, left);
    }
  }
}

template <typename V>
void correct_streams(const StreamsRow& row) {
  const int32_t count = row.routing.count;
  float coefficients[kMaxStreams];
  stream_coefficients<V>(row.routing, count, coefficients);
  for (int64_t c = 0; c < row.cols; c += 16) {
    const int64_t left = row.cols - c;
    const V active = V::load_first(row.streams + row.active * row.cols + c, left);
    const V change = V::load_first(row.x + c, left) - active;
    for (int32_t i = 0; i < count; ++i) {
      float* const stream = row.streams + i * row.cols + c;
      V::fma(V::set1(1.0F + coefficients[i]), change, V::load_first(stream, left))
          .store_first(stream, left);
    }
    V out = V::load_first(row.streams + row.active * row.cols + c, left);
    if (row.scales != nullptr) out = out * V::load_first(row.scales + c, left);
    out.store_first(row.out + c, left);
  }
}

template <typename V>
float mean_square(const float* x, int64_t cols) {
  return sum_row<V>(x, cols, [](V v) { return v * v; }) / static_cast<float>(cols);
}

// The numbers of a kind, of which there are at most 16 at a time: from `first` on.
template <typename V>
V connection_numbers(
    const ConnectedRow& row, float inverse_rms, int64_t first, int64_t count, int64_t kind) {
  const V made = V::load_first(row.made + first, count) * V::set1(inverse_rms);
  return V::fma(made, V::set1(row.scales[kind]), V::load_first(row.base + first, count));
}

template <typename V>
float inverse_rms(const ConnectedRow& row) {
  return 1.0F / __builtin_sqrtf(mean_square<V>(row.streams, row.count * row.cols) + row.norm_eps);
}

template <typename V>
void collapse_streams(const ConnectedRow& row) {
  float weights[16];
  const V numbers = connection_numbers<V>(row, inverse_rms<V>(row), 0, row.count, 0);
  (sigmoid_lanes(numbers) + V::set1(row.eps)).store_first(weights, row.count);
  for (int64_t c = 0; c < row.cols; c += 16) {
    const int64_t left = row.cols - c;
    V sum = V::set1(weights[0]) * V::load_first(row.streams + c, left);
    for (int32_t i = 1; i < row.count; ++i) {
      sum = V::fma(V::set1(weights[i]), V::load_first(row.streams + i * row.cols + c, left), sum);
    }
    sum.store_first(row.out + c, left);
  }
}

// Rows of `count` numbers, from those of the kind on.
template <typename V>
void mix_numbers(const ConnectedRow& row, float inverse_rms, float* mix) {
  const int64_t count = row.count;
  for (int64_t j = 0; j < count; ++j) {
    float* const own = mix + j * count;
    connection_numbers<V>(row, inverse_rms, (2 + j) * count, count, 2).store_first(own, count);
    float highest = own[0];
    for (int64_t k = 1; k < count; ++k) highest = own[k] > highest ? own[k] : highest;
    vector_exp(V::load_first(own, count) - V::set1(highest)).store_first(own, count);
    float sum = 0.0F;
    for (int64_t k = 0; k < count; ++k) sum += own[k];
    for (int64_t k = 0; k < count; ++k) own[k] = own[k] / sum + row.eps;
  }
  for (int32_t step = 0; step < 2 * row.mixing_turns - 1; ++step) {
    const int64_t to_next = step % 2 == 0 ? count : 1;  // of a column, or of a row
    const int64_t to_other = step % 2 == 0 ? 1 : count;
    for (int64_t a = 0; a < count; ++a) {
      float* const line = mix + a * to_other;
      float sum = 0.0F;
      for (int64_t b = 0; b < count; ++b) sum += line[b * to_next];
      for (int64_t b = 0; b < count; ++b) line[b * to_next] /= sum + row.eps;
    }
  }
}

template <typename V>
void expand_streams(const ConnectedRow& row) {
  const int32_t count = row.count;
  float weights[16];
  float mix[kMaxStreams * kMaxStreams];
  const float inverse = inverse_rms<V>(row);
  const V numbers = connection_numbers<V>(row, inverse, count, count, 1);
  V::fma(sigmoid_lanes(numbers), V::set1(row.magnitude), V::set1(row.branch_eps))
      .store_first(weights, count);
  const bool mixes = row.mixing_turns > 0;
  if (mixes) mix_numbers<V>(row, inverse, mix);
  for (int64_t c = 0; c < row.cols; c += 16) {
    const int64_t left = row.cols - c;
    const V x = V::load_first(row.x + c, left);
    V before[kMaxStreams];
    for (int32_t j = 0; j < count; ++j) {
      before[j] = V::load_first(row.streams + j * row.cols + c, left);
    }
    for (int32_t k = 0; k < count; ++k) {
      V sum = mixes ? V::set1(mix[k]) * before[0] : before[k];
      for (int32_t j = 1; mixes && j < count; ++j) {
        sum = V::fma(V::set1(mix[j * count + k]), before[j], sum);
      }
      V::fma(V::set1(weights[k]), x, sum).store_first(row.streams + k * row.cols + c, left);
    }
  }
}

template <typename V>
void match_rms(const float* like, float* x, int64_t cols, float least_square) {
  const float wanted = __builtin_sqrtf(mean_square<V>(like, cols));
  const float square = mean_square<V>(x, cols);
  // This way round what is not a number stays so.
  const float own = __builtin_sqrtf(square < least_square ? least_square : square);
  const V factor = V::set1(wanted / own);
  for (int64_t i = 0; i < cols; i += 16) {
    (V::load_first(x + i, cols - i) * factor).store_first(x + i, cols - i);
  }
}

template <typename V>
void statistical_top_k(float* x, int64_t cols, float deviations) {
  const auto count = static_cast<float>(cols);
  const float mean = sum_row<V>(x, cols, [](V v) { return v; }) / count;
  const float variance = sum_row<V>(x, cols,
                                    [mean](V v) {
                                      const V distance = v - V::set1(mean);
                                      return distance * distance;
                                    }) /
                         count;
  const V cutoff = V::set1(mean + __builtin_sqrtf(variance) * deviations);
  for (int64_t i = 0; i < cols; i += 16) {
    const V above = V::load_first(x + i, cols - i) - cutoff;
    V::max(V::zero(), above).store_first(x + i, cols - i);
  }
}

}  // namespace tgi
