// What becomes of the hidden states that a step gives back, on the host: Pooling.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "engine/tensor/batch.h"

namespace tgi {

// `hidden`: what `pool` was given, rows of f32 `stride` numbers apart. `out` is overwritten. Sums
// go row after row.
inline void pool_rows(const PooledRows& rows,
                      const float* hidden,
                      int64_t stride,
                      int64_t num_cols,
                      std::vector<float>& out) {
  const auto cols = static_cast<size_t>(num_cols);
  const auto num_rows = static_cast<size_t>(rows.num_rows);
  const float* row = hidden + rows.row * stride;
  if (rows.pooling == Pooling::kRows) {
    out.resize(num_rows * cols);
    for (size_t i = 0; i < num_rows; ++i, row += stride) {
      std::memcpy(out.data() + i * cols, row, cols * sizeof(float));
    }
    return;
  }
  const bool is_max = rows.pooling == Pooling::kMax;
  out.assign(cols, is_max ? -std::numeric_limits<float>::infinity() : 0.0F);
  for (size_t i = 0; i < num_rows; ++i, row += stride) {
    const float weight = rows.pooling == Pooling::kWeightedSum
                             ? static_cast<float>(rows.position + static_cast<int32_t>(i) + 1)
                             : 1.0F;
    for (size_t c = 0; c < cols; ++c) {
      out[c] = is_max ? std::max(out[c], row[c]) : out[c] + weight * row[c];
    }
  }
}

}  // namespace tgi
