// One of the two matrices of a product of low rank, somewhere in a tensor of its adapter: all of
// it, or what it holds for one expert.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/tensor/weight.h"
#include "engine/weights/checkpoint.h"
#include "engine/weights/weight_format.h"

namespace tgi {

struct Factor {
  const StoredTensor* tensor = nullptr;  // null: there is no product
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t first = 0;  // element (r, c) is number first + r * row_stride + c * col_stride
  int64_t row_stride = 0;
  int64_t col_stride = 1;

  explicit operator bool() const { return tensor != nullptr; }
  Factor transposed() const {
    return {.tensor = tensor,
            .rows = cols,
            .cols = rows,
            .first = first,
            .row_stride = col_stride,
            .col_stride = row_stride};
  }
  // Of rows that come in turns.
  Factor of_turn(Turns turns) const {
    Factor out = *this;
    out.rows /= turns.count;
    out.first += turns.index * row_stride;
    out.row_stride *= turns.count;
    return out;
  }
};

// REQUIRES: it has two dimensions.
Factor whole_factor(const StoredTensor& tensor);

// (rows, cols), row-major. REQUIRES: its numbers can be computed with.
std::vector<float> read_factor(const Checkpoint& checkpoint, const Factor& factor);

// A view of some of it in the checkpoint's bytes.
HostWeight slice_factor(const Checkpoint& checkpoint, const Factor& factor, Range rows, Range cols);

}  // namespace tgi
