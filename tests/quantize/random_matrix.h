// Numbers for the tests of the quantisers: the same ones every time.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/quantize/float_matrix.h"
#include "engine/tensor/tensor.h"

namespace tgi {

class TestNumbers {
 public:
  explicit TestNumbers(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}

  // Roughly normal: mean 0, deviation 1.
  float next() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) {
      state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
      sum += static_cast<double>(state_ >> 11) * 0x1p-53;
    }
    return static_cast<float>(sum);
  }

 private:
  uint64_t state_;
};

inline FloatMatrix random_matrix(int64_t rows, int64_t cols, uint64_t seed, float scale = 1.0F) {
  TestNumbers numbers(seed);
  FloatMatrix out(rows, cols);
  for (float& value : out.values) value = scale * numbers.next();
  return out;
}

// Inputs whose channels depend on each other and are of different sizes, as a model's are.
inline FloatMatrix correlated_inputs(int64_t rows, int64_t cols, uint64_t seed) {
  FloatMatrix out = random_matrix(rows, cols, seed);
  for (int64_t row = 0; row < rows; ++row) {
    const std::span<float> x = out.row(row);
    for (size_t i = 1; i < x.size(); ++i) x[i] = 0.6F * x[i - 1] + 0.8F * x[i];
    for (size_t i = 0; i < x.size(); i += 7) x[i] *= 6.0F;
  }
  return out;
}

inline Tensor as_tensor(FloatMatrix& matrix) {
  return {matrix.values.data(), DType::kF32, matrix.rows, matrix.cols, matrix.cols};
}

// Sum over tokens of |(a - b) x|^2.
inline double output_error(const FloatMatrix& a, const FloatMatrix& b, const FloatMatrix& inputs) {
  double total = 0.0;
  for (int64_t token = 0; token < inputs.rows; ++token) {
    for (int64_t row = 0; row < a.rows; ++row) {
      double sum = 0.0;
      for (int64_t col = 0; col < a.cols; ++col) {
        const auto at = static_cast<size_t>(row * a.cols + col);
        sum += (double{a.values[at]} - double{b.values[at]}) *
               double{inputs.values[static_cast<size_t>(token * a.cols + col)]};
      }
      total += sum * sum;
    }
  }
  return total;
}

}  // namespace tgi
