// Whether all numbers of an array are finite, from their bits: as fast as memory is read.
#pragma once

#include <cstddef>
#include <span>

#include "engine/tensor/tensor.h"

namespace tgi {

// False when there is a NaN or an infinity. The bytes need not be aligned. REQUIRES: whole elements
// of f32, f16 or bf16.
bool are_finite(std::span<const std::byte> bytes, DType dtype);

}  // namespace tgi
