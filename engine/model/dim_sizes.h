// How many numbers each kind of row and column has that tensors of a model are made of.
#pragma once

#include <cstdint>

#include "engine/model/architecture.h"

namespace tgi {

// Of a whole tensor, before any split, in that layer (-1: in none).
int64_t dim_size(Dim dim, const ModelConfig& config, int32_t layer);

}  // namespace tgi
