#include "engine/lora/base_copies.h"

#include <algorithm>

#include "engine/tensor/half.h"
#include "engine/tensor/weight_element.h"

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
  const int64_t count = copy.num_elements();
  for (int64_t i = 0; i < count; ++i) {
    const float expected = rounded(read_element(given.data(), *original.dtype, i), *copy.dtype);
    if (read_element(copied.data(), *copy.dtype, i) != expected) return false;
  }
  return true;
}

}  // namespace tgi
