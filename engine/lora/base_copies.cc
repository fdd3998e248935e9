#include "engine/lora/base_copies.h"

#include <algorithm>

#include "engine/lora/stored_values.h"
#include "engine/tensor/half.h"

namespace tgi {
namespace {

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
    const float expected = rounded(value_at(given.data(), *original.dtype, i), *copy.dtype);
    if (value_at(copied.data(), *copy.dtype, i) != expected) return false;
  }
  return true;
}

}  // namespace tgi
