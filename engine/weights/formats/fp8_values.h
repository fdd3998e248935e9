// Matrices of 8-bit floats (e4m3) with a grid of scales: one for all, one per row, or one per
// block.
#pragma once

#include <string>
#include <vector>

#include "engine/weights/formats/stored_arrays.h"

namespace tgi {

// Elements of the matrix that share a scale.
struct ScaleGrid {
  int64_t block_rows = 1;
  int64_t block_cols = 1;

  // The shape of the stored scales of a (rows, cols) matrix.
  std::vector<int64_t> shape(int64_t rows, int64_t cols) const {
    return {(rows + block_rows - 1) / block_rows, (cols + block_cols - 1) / block_cols};
  }
};

// What a checkpoint holds of such a matrix of `cols` columns.
StoredForm fp8_form(std::string quantised_as, const ScaleGrid& grid, int64_t cols);

// A block of the matrix: its codes in groups when `storage` says so, else as f32: value * scale,
// rounded once. Throws kInvalidArgument naming the tensor and the place of an element that is not a
// number.
HostWeight slice_fp8(const Checkpoint& checkpoint,
                     const MatrixSpec& spec,
                     const StoredTensor& weight,  // F8_E4M3 (rows, cols)
                     const StoredTensor& scale,   // as many as `grid` says, or one
                     const ScaleGrid& grid,
                     Range rows,
                     Range cols,
                     const MatrixStorage& storage);

}  // namespace tgi
