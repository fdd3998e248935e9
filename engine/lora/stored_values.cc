#include "engine/lora/stored_values.h"

#include <cstdint>
#include <cstring>

#include "engine/tensor/half.h"

namespace tgi {

float value_at(const std::byte* bytes, DType dtype, size_t index) {
  if (dtype == DType::kF32) {
    float value = 0.0F;
    std::memcpy(&value, bytes + index * sizeof value, sizeof value);
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, bytes + index * sizeof bits, sizeof bits);
  return dtype == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

std::vector<float> values_of(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  const std::byte* const bytes = checkpoint.bytes(tensor).data();
  std::vector<float> out(static_cast<size_t>(tensor.num_elements()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = value_at(bytes, *tensor.dtype, i);
  return out;
}

}  // namespace tgi
