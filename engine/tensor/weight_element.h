// One number of a stored array, as f32. The bytes need not be aligned.
#pragma once

#include <cstdint>
#include <cstring>

#include "engine/tensor/half.h"
#include "engine/tensor/weight.h"

namespace tgi {

inline float weight_element(const WeightPart& part, int64_t row, int64_t col) {
  const int64_t at = row * part.row_stride + col * part.col_stride;
  const std::byte* const from = part.data + at * static_cast<int64_t>(dtype_size(part.dtype));
  if (part.dtype == DType::kF32) {
    float value = 0;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return part.dtype == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

}  // namespace tgi
