#include "engine/quantize/rounding.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"
#include "base/parallel.h"
#include "engine/tensor/scale_search.h"
#include "engine/weights/weight_encoder.h"

namespace tgi {
namespace {

constexpr int64_t kRoundedRowsPerTask = 32;

void for_rows(int64_t rows, int num_threads, const std::function<void(int64_t)>& task) {
  parallel_for(num_threads, (rows + kRoundedRowsPerTask - 1) / kRoundedRowsPerTask,
               [&](int64_t index) {
                 const int64_t end = std::min(rows, (index + 1) * kRoundedRowsPerTask);
                 for (int64_t row = index * kRoundedRowsPerTask; row < end; ++row) task(row);
               });
}

// Nearest integer, ties to even, without a call: |x| < 2^22.
float nearest(float x) {
  constexpr float kShift = 0x1.8p23F;
  return (x + kShift) - kShift;
}

float squared_error(std::span<const float> x,
                    std::span<const float> importance,
                    const GroupScale& group,
                    int32_t bits) {
  const float inverse = 1.0F / group.scale;
  const auto half = static_cast<float>(1 << (bits - 1));
  const auto zero = static_cast<float>(group.zero);
  float sum = 0.0F;
  for (size_t i = 0; i < x.size(); ++i) {
    const float ratio = std::clamp(x[i] * inverse, -1024.0F, 1024.0F);
    const float code = std::clamp(nearest(ratio) + zero, -half, half - 1.0F);
    const float error = x[i] - group.scale * (code - zero);
    sum += error * error * (importance.empty() ? 1.0F : importance[i]);
  }
  return sum;
}

float signed_largest(std::span<const float> x) {
  float largest = 0.0F;
  for (const float value : x) {
    if (std::abs(value) > std::abs(largest)) largest = value;
  }
  return largest;
}

float nonzero(float scale) {
  return scale == 0.0F || !std::isfinite(scale) ? 1.0F : scale;
}

GroupScale choose_symmetric(std::span<const float> x,
                            std::span<const float> importance,
                            const CodeOptions& options) {
  const float largest = signed_largest(x);
  const auto round = [&](float scale) {
    return nonzero(round_to_dtype(options.scale_dtype, scale));
  };
  if (largest == 0.0F) return {};
  if (options.bits != 4) {
    const auto highest = static_cast<float>((1 << (options.bits - 1)) - 1);
    return {.scale = round(std::abs(largest) / highest)};
  }
  return {.scale = least_error_int4_scale(largest, round, [&](float scale) {
            return squared_error(x, importance, {.scale = scale}, options.bits);
          })};
}

// The range from the smallest to the largest value, 0 included, or parts of it: it often pays to
// cut the ends off.
GroupScale choose_asymmetric(std::span<const float> x,
                             std::span<const float> importance,
                             const CodeOptions& options) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const float lowest = std::min(*low, 0.0F);
  const float highest = std::max(*high, 0.0F);
  const auto steps = static_cast<float>((1 << options.bits) - 1);
  const auto half = static_cast<float>(1 << (options.bits - 1));
  if (lowest == highest) return {};
  GroupScale best;
  float least = std::numeric_limits<float>::infinity();
  for (const float part : {1.0F, 0.95F, 0.9F, 0.85F, 0.8F, 0.75F, 0.7F, 0.65F, 0.6F}) {
    GroupScale group;
    group.scale = nonzero(round_to_dtype(options.scale_dtype, part * (highest - lowest) / steps));
    const float zero = nearest(-part * lowest / group.scale) - half;
    group.zero = static_cast<int8_t>(std::clamp(zero, -half, half - 1.0F));
    const float cost = squared_error(x, importance, group, options.bits);
    if (cost < least) {
      least = cost;
      best = group;
    }
  }
  return best;
}

}  // namespace

GroupScale choose_scale(std::span<const float> x,
                        std::span<const float> importance,
                        const CodeOptions& options) {
  return options.symmetric ? choose_symmetric(x, importance, options)
                           : choose_asymmetric(x, importance, options);
}

int8_t code_of(float x, const GroupScale& group, int32_t bits) {
  const auto half = static_cast<float>(1 << (bits - 1));
  const float ratio = std::clamp(x * (1.0F / group.scale), -1024.0F, 1024.0F);
  const float code = nearest(ratio) + static_cast<float>(group.zero);
  return static_cast<int8_t>(std::clamp(code, -half, half - 1.0F));
}

GroupedMatrix make_grouped(int64_t rows, int64_t cols, const CodeOptions& options) {
  TGI_CHECK(options.group_size > 0 && cols % options.group_size == 0);
  GroupedMatrix out;
  out.rows = rows;
  out.cols = cols;
  out.bits = options.bits;
  out.group_size = options.group_size;
  out.codes.resize(static_cast<size_t>(rows * cols));
  out.scales.resize(static_cast<size_t>(rows * out.num_groups()));
  if (!options.symmetric) out.zeros.resize(out.scales.size());
  return out;
}

GroupedMatrix round_to_nearest(const FloatMatrix& w,
                               std::span<const float> importance,
                               const CodeOptions& options,
                               int num_threads) {
  GroupedMatrix out = make_grouped(w.rows, w.cols, options);
  const auto size = static_cast<size_t>(options.group_size);
  for_rows(w.rows, num_threads, [&](int64_t row) {
    for (int64_t g = 0; g < out.num_groups(); ++g) {
      const size_t begin = static_cast<size_t>(g) * size;
      const auto x = w.row(row).subspan(begin, size);
      const GroupScale group = choose_scale(
          x, importance.empty() ? importance : importance.subspan(begin, size), options);
      const auto at = static_cast<size_t>(row * out.num_groups() + g);
      out.scales[at] = group.scale;
      if (!options.symmetric) out.zeros[at] = group.zero;
      int8_t* codes = out.codes.data() + row * w.cols + static_cast<int64_t>(begin);
      for (size_t i = 0; i < size; ++i) codes[i] = code_of(x[i], group, options.bits);
    }
  });
  return out;
}

FloatMatrix dequantize(const GroupedMatrix& w) {
  FloatMatrix out(w.rows, w.cols);
  for (int64_t row = 0; row < w.rows; ++row) {
    const int8_t* codes = w.codes.data() + row * w.cols;
    const std::span<float> to = out.row(row);
    for (int64_t col = 0; col < w.cols; ++col) {
      const auto at = static_cast<size_t>(row * w.num_groups() + col / w.group_size);
      const int zero = w.zeros.empty() ? 0 : w.zeros[at];
      to[static_cast<size_t>(col)] = w.scales[at] * static_cast<float>(codes[col] - zero);
    }
  }
  return out;
}

}  // namespace tgi
