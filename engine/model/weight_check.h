// Does a checkpoint hold exactly what the model needs? Looks at names, shapes and types only; the
// data is not touched, but for a head that should be tied.
#pragma once

#include <map>
#include <vector>

#include "engine/model/tensor_table.h"

namespace tgi {

// For each entry of the table, the stored tensors behind it, in the order its weight format wants.
using TensorSources = std::vector<std::vector<const StoredTensor*>>;

// Throws kInvalidArgument listing every missing, unused and misshapen tensor at once; kUnsupported
// when all is there but of element types that can't be computed with.
TensorSources match_checkpoint(const LoadedConfig& model,
                               const TensorTable& table,
                               const Checkpoint& checkpoint);

// The same for who does not load them yet.
void check_weights(const LoadedConfig& model, const Checkpoint& checkpoint);

// What a weight format is asked for.
MatrixSpec matrix_spec(const LoadedConfig& model, const TensorEntry& entry);

}  // namespace tgi
