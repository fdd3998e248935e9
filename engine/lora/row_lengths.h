// The lengths of a linear's rows as an adapter changes them, which DoRA divides by
// (https://arxiv.org/abs/2402.09353).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/lora/module_sites.h"
#include "engine/weights/checkpoint.h"

namespace tgi {

// In f32: what is added to a weight is scale * B * A.
struct LowRankProduct {
  const StoredTensor* a = nullptr;  // (rank, inputs)
  const StoredTensor* b = nullptr;  // (outputs, rank)
  float scale = 1.0F;
};

// ||W + scale * B * A|| of each of the module's outputs, whole rows, whatever a rank of tensor
// parallelism has of them. A quantised weight counts as what it stands for. Reads all of W, with
// half of the machine's threads. Throws kInvalidArgument where the base has no such weight or of
// another size, kUnsupported where it is of random numbers that only devices make. REQUIRES:
// `table` is the model's, and the product's tensors have the module's sizes.
std::vector<float> changed_row_lengths(const LoadedConfig& model,
                                       const TensorTable& table,
                                       const Checkpoint& base,
                                       const ModuleTarget& target,
                                       const Checkpoint& adapter,
                                       const LowRankProduct& product);

}  // namespace tgi
