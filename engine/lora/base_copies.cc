#include "engine/lora/base_copies.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "engine/tensor/half.h"

namespace tgi {
namespace {

template <typename Bits>
Bits bits_at(std::span<const std::byte> bytes, size_t index) {
  Bits bits = 0;
  std::memcpy(&bits, bytes.data() + index * sizeof(Bits), sizeof(Bits));
  return bits;
}

float value_at(std::span<const std::byte> bytes, DType dtype, size_t index) {
  if (dtype == DType::kF32) {
    float value = 0.0F;
    std::memcpy(&value, bytes.data() + index * sizeof(float), sizeof(float));
    return value;
  }
  const auto bits = bits_at<uint16_t>(bytes, index);
  return dtype == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

float rounded(float value, DType dtype) {
  if (dtype == DType::kF32) return value;
  return dtype == DType::kF16 ? f16_to_f32(f32_to_f16(value)) : bf16_to_f32(f32_to_bf16(value));
}

}  // namespace

bool is_copy(const Checkpoint& adapter,
             const StoredTensor& copy,
             const Checkpoint& base,
             const StoredTensor& original) {
  if (!copy.dtype || !original.dtype || copy.shape != original.shape) return false;
  if (base.random_key(original)) return false;
  const auto copied = adapter.bytes(copy);
  const auto given = base.bytes(original);
  if (copy.dtype == original.dtype) return std::ranges::equal(copied, given);
  const auto count = static_cast<size_t>(copy.num_elements());
  for (size_t i = 0; i < count; ++i) {
    const float expected = rounded(value_at(given, *original.dtype, i), *copy.dtype);
    if (value_at(copied, *copy.dtype, i) != expected) return false;
  }
  return true;
}

}  // namespace tgi
