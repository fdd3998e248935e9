// The numbers of a tensor of a GGUF file.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/tensor/tensor.h"
#include "engine/weights/ggml/gguf_file.h"

namespace tgi {

// Of elements that devices know as they are stored: f32, f16 and bf16.
std::optional<DType> native_type(const GgmlType& type);

// `blocks`: whole ones, of the tensor. Throws kUnsupported, naming the tensor, for a type whose
// values are not known.
std::vector<float> decode_values(const GgufTensor& tensor, std::span<const std::byte> blocks);

}  // namespace tgi
