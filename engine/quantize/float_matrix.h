// A matrix of floats that a quantiser works on, one at a time: (out_features, in_features).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tgi {

struct FloatMatrix {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<float> values;  // (rows, cols)

  FloatMatrix() = default;
  FloatMatrix(int64_t num_rows, int64_t num_cols)
      : rows(num_rows), cols(num_cols), values(static_cast<size_t>(num_rows * num_cols)) {}

  std::span<float> row(int64_t index) {
    return {values.data() + index * cols, static_cast<size_t>(cols)};
  }
  std::span<const float> row(int64_t index) const {
    return {values.data() + index * cols, static_cast<size_t>(cols)};
  }
};

}  // namespace tgi
