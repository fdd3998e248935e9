// How matrices and the KV cache lie in memory: in panels of 16 rows, the 16 values of one column
// side by side, so that a vector register holds one column of 16 outputs.
//
//   panel = lines; a line holds columns (2i, 2i + 1) of the 16 rows
//   f32   [16 of column 2i][16 of column 2i + 1]                          128 bytes
//   f16   [16 of column 2i][16 of column 2i + 1]                           64 bytes
//   bf16  16 pairs (column 2i, column 2i + 1): a shift or a mask widens    64 bytes
//
// An odd number of columns and missing rows of the last panel are padded with zeros.
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace tgi {

inline constexpr int64_t kPanelRows = 16;

constexpr int64_t line_bytes(DType dtype) {
  return 2 * kPanelRows * static_cast<int64_t>(dtype_size(dtype));
}

constexpr int64_t panel_bytes(DType dtype, int64_t cols) {
  return (cols + 1) / 2 * line_bytes(dtype);
}

// Of one element, from the start of its panel.
constexpr int64_t panel_offset_bytes(DType dtype, int64_t row_in_panel, int64_t col) {
  const auto size = static_cast<int64_t>(dtype_size(dtype));
  const int64_t in_line =
      dtype == DType::kBF16 ? 2 * row_in_panel + (col & 1) : kPanelRows * (col & 1) + row_in_panel;
  return col / 2 * line_bytes(dtype) + in_line * size;
}

}  // namespace tgi
