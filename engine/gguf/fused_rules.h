// Tensors that llama.cpp's converter joins when asked to (--fuse-qkv, --fuse-gate-up-exps): what an
// architecture says of the parts holds for their rows.
#pragma once

#include <string_view>
#include <vector>

#include "engine/gguf/model_reader.h"

namespace tgi::gguf {

// The rules for what is stored as one, made from those for its parts. `stem` and `layer` are the
// tensor's: "blk.{layer}.attn_qkv", "12". Empty: it is no such tensor, or its parts have no names.
// Throws kInvalidArgument where its rows can't be those of the parts.
std::vector<TensorRule> rules_of_parts(const ModelReader& model,
                                       std::string_view stem,
                                       std::string_view layer,
                                       const GgufTensor& tensor);

}  // namespace tgi::gguf
