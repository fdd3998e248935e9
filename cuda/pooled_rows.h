// What becomes of the hidden states that a step gives back, on the host: Pooling.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/tensor/batch.h"

namespace tgi::cuda {

// `hidden`: (num_rows, cols) as `pool` was given them. `out` is overwritten. Sums go row after row.
void pool_rows(const PooledRows& rows, const float* hidden, int64_t cols, std::vector<float>& out);

}  // namespace tgi::cuda
