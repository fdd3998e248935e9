// Integers of gptq as they are stored for the kernel "marlin", which reads whole tiles: 4 bits,
// symmetric, of a module
//   B  I32 (in / 16, out * 2)   a row holds tiles of 16 inputs x 16 outputs, four of them in one
//                               order of 1024 codes, eight codes a word
//   s  (groups, out)            64 outputs in an order of their own, 32 where there is one group
//
// Source of the orders: https://github.com/IST-DASLab/marlin (Layer.pack), which AutoGPTQ writes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/weights/formats/stored_arrays.h"

namespace tgi {

// `group_size`: 0: one per row. Adds to the problems what is missing, misshapen, or can't be cut
// into tiles.
std::vector<const StoredTensor*> collect_marlin(const Checkpoint& checkpoint,
                                                const MatrixSpec& spec,
                                                int64_t group_size,
                                                WeightProblems& problems);

// Fills in codes and scales of the block, whose first group is `first_group` of the matrix.
void read_marlin(const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols,
                 int64_t first_group,
                 DecodedBlock& block);

// Of a tensor that is the kernel's own: room for its counters, nothing of the model.
bool is_marlin_workspace(std::string_view name);

}  // namespace tgi
