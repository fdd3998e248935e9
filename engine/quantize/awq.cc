#include "engine/quantize/awq.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/parallel.h"
#include "engine/quantize/blas.h"

namespace tgi {
namespace {

constexpr int kGridSteps = 20;
constexpr int64_t kAwqRowsPerTask = 32;

// mean_magnitude ^ exponent, spread evenly around 1.
std::vector<float> scales_of(std::span<const float> mean_magnitude, double exponent) {
  std::vector<float> out;
  float low = std::numeric_limits<float>::infinity();
  float high = 0.0F;
  for (const float mean : mean_magnitude) {
    const double scale = std::pow(std::max(double{mean}, 1e-8), exponent);
    out.push_back(static_cast<float>(std::max(scale, 1e-4)));
    low = std::min(low, out.back());
    high = std::max(high, out.back());
  }
  const float middle = std::sqrt(low * high);
  for (float& scale : out) scale /= middle;
  return out;
}

// The squared error of the output on the sample, when columns are scaled by `scales` for rounding.
double output_error(const FloatMatrix& w,
                    std::span<const float> scales,
                    std::span<const float> importance,
                    const FloatMatrix& sample,
                    const CodeOptions& options,
                    int num_threads) {
  const int64_t num_tasks = (w.rows + kAwqRowsPerTask - 1) / kAwqRowsPerTask;
  std::vector<double> errors(static_cast<size_t>(num_tasks));
  const auto group_size = static_cast<size_t>(options.group_size);
  parallel_for(num_threads, num_tasks, [&](int64_t task) {
    const int64_t begin = task * kAwqRowsPerTask;
    const int64_t count = std::min(w.rows - begin, kAwqRowsPerTask);
    FloatMatrix change(count, w.cols);
    std::vector<float> scaled(static_cast<size_t>(w.cols));
    for (int64_t row = 0; row < count; ++row) {
      const std::span<const float> x = w.row(begin + row);
      const std::span<float> to = change.row(row);
      for (size_t i = 0; i < scaled.size(); ++i) scaled[i] = x[i] * scales[i];
      for (size_t first = 0; first < scaled.size(); first += group_size) {
        const GroupScale group =
            choose_scale(std::span<const float>(scaled).subspan(first, group_size),
                         importance.subspan(first, group_size), options);
        for (size_t i = first; i < first + group_size; ++i) {
          to[i] = value_of(code_of(scaled[i], group, options.bits), group) / scales[i] - x[i];
        }
      }
    }
    FloatMatrix out(sample.rows, count);
    multiply_by_transpose(sample.rows, count, w.cols, sample.values.data(), w.cols,
                          change.values.data(), w.cols, out.values.data(), count);
    double sum = 0.0;
    for (const float value : out.values) sum += double{value} * double{value};
    errors[static_cast<size_t>(task)] = sum;
  });
  return std::accumulate(errors.begin(), errors.end(), 0.0);
}

}  // namespace

InputStatistics::InputStatistics(int64_t cols, int64_t num_tokens, int64_t max_sample_rows)
    : cols_(cols),
      stride_(std::max<int64_t>(1, (num_tokens + max_sample_rows - 1) / max_sample_rows)),
      magnitude_(static_cast<size_t>(cols)),
      square_(static_cast<size_t>(cols)) {
  sample_.cols = cols;
}

void InputStatistics::add(const Tensor& x) {
  TGI_CHECK(x.dtype == DType::kF32 && x.cols == cols_);
  for (int64_t row = 0; row < x.rows; ++row, ++num_tokens_) {
    const float* values = x.as<const float>() + row * x.stride;
    for (size_t i = 0; i < magnitude_.size(); ++i) {
      magnitude_[i] += std::abs(double{values[i]});
      square_[i] += double{values[i]} * double{values[i]};
    }
    if (num_tokens_ % stride_ != 0) continue;
    sample_.values.insert(sample_.values.end(), values, values + cols_);
    ++sample_.rows;
  }
}

std::vector<float> InputStatistics::mean_magnitude() const {
  std::vector<float> out;
  for (const double sum : magnitude_) {
    out.push_back(static_cast<float>(sum / static_cast<double>(std::max<int64_t>(1, num_tokens_))));
  }
  return out;
}

std::vector<float> InputStatistics::mean_square() const {
  std::vector<float> out;
  for (const double sum : square_) {
    out.push_back(static_cast<float>(sum / static_cast<double>(std::max<int64_t>(1, num_tokens_))));
  }
  return out;
}

std::vector<float> search_channel_scales(std::span<const FloatMatrix* const> weights,
                                         const InputStatistics& input,
                                         const CodeOptions& options,
                                         int num_threads) {
  const std::vector<float> mean = input.mean_magnitude();
  std::vector<float> best(mean.size(), 1.0F);
  double least = std::numeric_limits<double>::infinity();
  for (int step = 0; step < kGridSteps; ++step) {
    const std::vector<float> scales = scales_of(mean, static_cast<double>(step) / kGridSteps);
    std::vector<float> importance = input.mean_square();
    for (size_t i = 0; i < scales.size(); ++i) importance[i] /= scales[i] * scales[i];
    double error = 0.0;
    for (const FloatMatrix* w : weights) {
      error += output_error(*w, scales, importance, input.sample(), options, num_threads);
    }
    if (error < least) {
      least = error;
      best = scales;
    }
  }
  return best;
}

void scale_columns(FloatMatrix& w, std::span<const float> scales) {
  for (int64_t row = 0; row < w.rows; ++row) {
    const std::span<float> values = w.row(row);
    for (size_t i = 0; i < values.size(); ++i) values[i] *= scales[i];
  }
}

}  // namespace tgi
