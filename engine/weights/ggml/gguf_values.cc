#include "engine/weights/ggml/gguf_values.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/error.h"

namespace tgi {

std::optional<DType> native_type(const GgmlType& type) {
  if (type.name == "F32") return DType::kF32;
  if (type.name == "F16") return DType::kF16;
  if (type.name == "BF16") return DType::kBF16;
  return std::nullopt;
}

std::vector<float> decode_values(const GgufTensor& tensor, std::span<const std::byte> blocks) {
  const GgmlType& type = *tensor.type;
  if (type.decode == nullptr) {
    throw Error(Code::kUnsupported,
                fmt::format("tensor {}: elements of {} can't be used", tensor.name, type.name));
  }
  const auto num_blocks = static_cast<int64_t>(blocks.size()) / type.block_bytes;
  std::vector<float> out(static_cast<size_t>(num_blocks * type.block_size));
  type.decode(blocks.data(), num_blocks, out.data());
  return out;
}

}  // namespace tgi
