// Plain matrices, also those that a quantised checkpoint leaves as they were.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "engine/weights/weight_format.h"

namespace tgi {

std::vector<const StoredTensor*> collect_dense(const Checkpoint& checkpoint,
                                               const MatrixSpec& spec,
                                               WeightProblems& problems);

// Whether a matrix that decides where tokens go is stored plainly, though config.json says that it
// is quantised: routers are no linears to many quantisers, which leave them alone without a word.
// It is there in numbers, and none of `arrays`, which would be its module's.
bool is_plain_choice(const Checkpoint& checkpoint,
                     const MatrixSpec& spec,
                     std::initializer_list<std::string_view> arrays);

// Views of the stored bytes.
HostWeight slice_dense(const Checkpoint& checkpoint,
                       const MatrixSpec& spec,
                       const StoredTensor& tensor,
                       Range rows,
                       Range cols);

}  // namespace tgi
