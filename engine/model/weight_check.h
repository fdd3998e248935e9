// Does a checkpoint hold exactly what the model needs? Looks at names, shapes and types only; the
// data is not touched, but for a head that should be tied.
#pragma once

#include <map>
#include <string_view>
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

// Whether a tensor of that name, which is none of the table's, is known to change no answer: of
// training, of a head that is not asked, of layers that only draft; or that it is read elsewhere,
// as those of is_of_task_head are.
bool is_ignored(const LoadedConfig& model, std::string_view name);

// Whether it is of the head that the model's task is done by (head_spec.h).
bool is_of_task_head(const LoadedConfig& model, std::string_view name);

// What a weight format is asked for.
MatrixSpec matrix_spec(const LoadedConfig& model, const TensorEntry& entry);

}  // namespace tgi
