// The numbers of stored arrays, as f32. The bytes need not be aligned. REQUIRES of all: f32, f16 or
// bf16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "engine/tensor/half.h"
#include "engine/tensor/weight.h"

namespace tgi {

// Number `index` of an array.
inline float read_element(const std::byte* bytes, DType dtype, int64_t index) {
  const std::byte* const from = bytes + index * static_cast<int64_t>(dtype_size(dtype));
  if (dtype == DType::kF32) {
    float value = 0;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return dtype == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

// As many as there is room for. One loop for each type, to be made of vectors.
inline void read_elements(const std::byte* bytes, DType dtype, std::span<float> out) {
  if (dtype == DType::kF32) {
    if (!out.empty()) std::memcpy(out.data(), bytes, out.size_bytes());
    return;
  }
  const auto convert_all = [&](auto convert) {
    for (size_t i = 0; i < out.size(); ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
      out[i] = convert(bits);
    }
  };
  dtype == DType::kF16 ? convert_all(f16_to_f32) : convert_all(bf16_to_f32);
}

// All of an array.
inline std::vector<float> read_elements(std::span<const std::byte> bytes, DType dtype) {
  std::vector<float> out(bytes.size() / dtype_size(dtype));
  read_elements(bytes.data(), dtype, out);
  return out;
}

inline float weight_element(const WeightPart& part, int64_t row, int64_t col) {
  return read_element(part.data, part.dtype, row * part.row_stride + col * part.col_stride);
}

}  // namespace tgi
