// Matrices of 4-bit floats (e2m1: 0, 1/2, 1, 1 1/2, 2, 3, 4, 6 and their negatives), two in a byte,
// the first in the low half, with a scale for each group of columns of a row:
//   mxfp4  groups of 32, scales U8 of e8m0: the exponent of a power of two + 127
//   nvfp4  groups of 16, scales F8_E4M3, and one number for the whole matrix beside them
// Codes on the way to a device are twice the values, which are integers; scales make up for it.
//
// Source: https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf;
// https://docs.nvidia.com/deeplearning/transformer-engine, NVFP4.
#pragma once

#include <cstdint>
#include <string>

#include "engine/weights/formats/stored_arrays.h"

namespace tgi {

inline constexpr int64_t kNvfp4GroupSize = 16;

// The number that all scales of a matrix are multiplied with, or divided by.
struct MatrixScale {
  float value = 1.0F;
  bool divides = false;
};

// Of a tensor of one number. Throws kInvalidArgument naming it where that is not finite or, of one
// that divides, 0.
MatrixScale read_matrix_scale(const Checkpoint& checkpoint,
                              const StoredTensor& tensor,
                              bool divides);

struct Fp4Matrix {
  const StoredTensor& codes;   // U8 (lines, cols / 2)
  const StoredTensor& scales;  // U8 or F8_E4M3 (lines, cols / group_size)
  int64_t cols = 0;            // of a line, a multiple of group_size
  int64_t group_size = 0;      // an even number
  MatrixScale matrix_scale{};
  int64_t first_line = 0;  // of row 0
  int64_t line_step = 1;   // from row to row
};

// What nvfp4 is held as: its codes are integers of 6 bits, and its scales take f32. Mxfp4 has a
// form of its own.
StoredForm nvfp4_form(std::string quantised_as);
StoredForm mxfp4_form(std::string quantised_as);

// A block of the matrix. Throws kInvalidArgument naming the tensor and the place of a scale that is
// no number.
HostWeight slice_fp4(const Checkpoint& checkpoint,
                     const MatrixSpec& spec,
                     const Fp4Matrix& matrix,
                     Range rows,
                     Range cols,
                     const MatrixStorage& storage);

}  // namespace tgi
