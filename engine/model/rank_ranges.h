// How the share of a rank is cut out of each tensor of a model (tensor parallelism,
// https://arxiv.org/abs/1909.08053, section 3). From the config alone.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/architecture.h"

namespace tgi {

// Throws kInvalidArgument when heads or intermediate_size can't be dealt out evenly.
void check_world_size(const ModelConfig& config, int world_size);

// The rank's part of a dimension of this kind in that layer (-1: in none): one range, or one within
// each of q, k and v for the fused kind. REQUIRES: check_world_size.
std::vector<Range> rank_ranges(
    Dim dim, const ModelConfig& config, int32_t layer, int rank, int world_size);

// All of the dimension, as one range per part.
std::vector<Range> whole_range(int64_t size);

}  // namespace tgi
