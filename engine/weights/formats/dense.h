// Plain matrices, also those that a quantised checkpoint leaves as they were.
#pragma once

#include <vector>

#include "engine/weights/weight_format.h"

namespace tgi {

std::vector<const StoredTensor*> collect_dense(const Checkpoint& checkpoint,
                                               const MatrixSpec& spec,
                                               WeightProblems& problems);

// Views of the stored bytes.
HostWeight slice_dense(const Checkpoint& checkpoint,
                       const MatrixSpec& spec,
                       const StoredTensor& tensor,
                       Range rows,
                       Range cols);

}  // namespace tgi
