// Weights of the base model that an adapter brings along, as PEFT does where the head or the
// embedding is among its targets.
#pragma once

#include "engine/weights/checkpoint.h"

namespace tgi {

// Whether `copy` holds the numbers of `original`, rounded to its own type where that is another.
bool is_copy(const Checkpoint& adapter,
             const StoredTensor& copy,
             const Checkpoint& base,
             const StoredTensor& original);

}  // namespace tgi
