// Groups of floats to small integers with a scale: the scale, and rounding to nearest. What all
// quantisers here have in common.
#pragma once

#include <cstdint>
#include <span>

#include "engine/quantize/float_matrix.h"
#include "engine/tensor/tensor.h"
#include "engine/weights/grouped_matrix.h"

namespace tgi {

struct CodeOptions {
  int32_t bits = 4;
  int32_t group_size = 128;  // columns that share a scale; the number of columns: one for each row
  bool symmetric = true;     // no zero points
  DType scale_dtype = DType::kF16;  // what a scale is stored as: it is rounded before it is used
};

// w = scale * (code - zero)
struct GroupScale {
  float scale = 1.0F;
  int8_t zero = 0;
};

// What is best for a group of numbers by squared error, of each column weighted by its
// `importance` (empty: all alike). A group of zeros has scale 1. Scales may be negative: a code
// reaches one step further below zero than above.
GroupScale choose_scale(std::span<const float> x,
                        std::span<const float> importance,
                        const CodeOptions& options);

int8_t code_of(float x, const GroupScale& group, int32_t bits);

inline float value_of(int8_t code, const GroupScale& group) {
  return group.scale * static_cast<float>(code - group.zero);
}

// An empty matrix of codes for a matrix of this size. REQUIRES: the group size divides the columns.
GroupedMatrix make_grouped(int64_t rows, int64_t cols, const CodeOptions& options);

// Each number to the nearest. `importance`: (cols), or empty.
GroupedMatrix round_to_nearest(const FloatMatrix& w,
                               std::span<const float> importance,
                               const CodeOptions& options,
                               int num_threads);

// What the codes stand for.
FloatMatrix dequantize(const GroupedMatrix& w);

}  // namespace tgi
