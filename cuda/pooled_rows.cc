#include "cuda/pooled_rows.h"

#include <algorithm>
#include <cstddef>

namespace tgi::cuda {

void pool_rows(const PooledRows& rows, const float* hidden, int64_t cols, std::vector<float>& out) {
  const float* const first = hidden + rows.row * cols;
  const int32_t num_kept = rows.pooling == Pooling::kRows ? rows.num_rows : 1;
  out.assign(first, first + num_kept * cols);
  if (rows.pooling == Pooling::kRows) return;
  const bool is_weighted = rows.pooling == Pooling::kWeightedSum;
  if (is_weighted) {
    for (float& x : out) x *= static_cast<float>(rows.position + 1);
  }
  for (int32_t i = 1; i < rows.num_rows; ++i) {
    const float* const row = first + i * cols;
    const float weight = is_weighted ? static_cast<float>(rows.position + i + 1) : 1.0F;
    for (size_t c = 0; c < out.size(); ++c) {
      out[c] = rows.pooling == Pooling::kMax ? std::max(out[c], row[c]) : out[c] + weight * row[c];
    }
  }
}

}  // namespace tgi::cuda
