// Tensors of a checkpoint that hold no weights but whole numbers, by which something else is found.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/weights/checkpoint.h"
#include "engine/weights/weight_format.h"

namespace tgi {

// Adds to `problems` when the tensor is not of I64 or I32 or its shape is not `expected`.
void check_stored_indices(const StoredTensor& tensor,
                          std::span<const int64_t> expected,
                          WeightProblems& problems);

// All of a tensor of two dimensions, which is released. Throws kInvalidArgument naming tensor, row
// and column, with the number and what was expected, for one that is not from 0 to count - 1.
// REQUIRES: check_stored_indices found nothing.
std::vector<int32_t> read_indices(const Checkpoint& checkpoint,
                                  const StoredTensor& tensor,
                                  int64_t count);

}  // namespace tgi
