// Kernels of engine/device/stream_ops.h, for one row. Sums run as in elementwise.h; those over the
// few streams run in their order.
#pragma once

#include "engine/cpu/kernels/elementwise.h"
#include "engine/cpu/kernels/kernel_table.h"

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
