// What an adapter adds to a model: to columns of what a linear gives, a product of low rank (LoRA,
// https://arxiv.org/abs/2106.09685).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/tensor/weight.h"

namespace tgi {

// That devices have memory for.
inline constexpr int32_t kMaxAdapterRank = 256;

// out[row][first_output + n] += scale * sum over r of b[n][r] * (sum over k of a[r][k] * x[row][k])
struct LowRankPart {
  int32_t site = 0;  // which linear of the model
  int64_t first_output = 0;
  float scale = 1.0F;
  HostWeight a;               // (rank, columns of x)
  std::vector<HostWeight> b;  // one below the other (outputs, rank)

  int64_t num_outputs() const {
    int64_t count = 0;
    for (const HostWeight& piece : b) count += piece.rows;
    return count;
  }
};

}  // namespace tgi
