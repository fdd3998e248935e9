// The numbers of stored tensors, one by one or all of a small one.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/weights/checkpoint.h"

namespace tgi {

// Number `index` of an array, which need not be aligned. REQUIRES: f32, f16 or bf16.
float value_at(const std::byte* bytes, DType dtype, size_t index);

// All of a tensor. REQUIRES: it has one of these types.
std::vector<float> values_of(const Checkpoint& checkpoint, const StoredTensor& tensor);

}  // namespace tgi
