// What an adapter changes in a model: to columns of what a linear gives, a product of low rank is
// added (LoRA, https://arxiv.org/abs/2106.09685), their size is changed (DoRA,
// https://arxiv.org/abs/2402.09353), and so is their bias.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/tensor/weight.h"

namespace tgi {

// That devices have memory for.
inline constexpr int32_t kMaxAdapterRank = 256;

// With product[n] = scale * sum over r of b[n][r] * (sum over k of a[r][k] * x[row][k]), in this
// order: out[row][first_output + n] = gain[n] * (out[row][first_output + n] + product[n]) +
// offset[n]. Of a lookup each row has a token in place of x, and the inner sum is a[token][r].
struct LowRankPart {
  int32_t site = 0;        // which linear of the model, or its embedding
  bool is_lookup = false;  // of the embedding; has no gain and no offset
  int64_t first_output = 0;
  float scale = 1.0F;
  HostWeight a;  // (rank, columns of x), of a lookup (tokens, rank); rank 0: no product
  std::vector<HostWeight> b;    // one below the other (outputs, rank); of rank 0 none
  std::vector<float> gain{};    // (optional: 1) (outputs)
  std::vector<float> offset{};  // (optional: 0) (outputs); given where there is no product

  int64_t rank() const { return is_lookup ? a.cols : a.rows; }
  int64_t num_outputs() const {
    if (b.empty()) return static_cast<int64_t>(offset.size());
    int64_t count = 0;
    for (const HostWeight& piece : b) count += piece.rows;
    return count;
  }
};

// Throws kUnsupported, naming the part, for a rank above kMaxAdapterRank.
inline void require_rank(const LowRankPart& part) {
  if (part.rank() <= kMaxAdapterRank) return;
  throw Error(Code::kUnsupported, part.a.name + ": rank " + std::to_string(part.rank()) +
                                      ", where adapters of ranks up to " +
                                      std::to_string(kMaxAdapterRank) + " are supported");
}

}  // namespace tgi
