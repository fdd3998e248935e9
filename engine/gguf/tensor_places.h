// The other direction of TensorRule: under which name a file of an architecture has a tensor of the
// model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/gguf/model_reader.h"

namespace tgi::gguf {

struct ModelTensor {
  std::string_view name;    // "model.layers.3.self_attn.q_proj.weight"
  int32_t layer = -1;       // -1: not of a layer
  int32_t expert = -1;      // -1: not of an expert
  bool is_stacked = false;  // one tensor has the matrices of all experts
};

struct TensorPlace {
  std::string stored;  // "blk.3.attn_q.weight"
  const TensorRule* rule = nullptr;
  bool is_bias = false;
  bool is_of_stack = false;  // of the experts' matrices, the one of that expert
};

// Nothing when the rules name no such tensor, or only parts of one.
std::optional<TensorPlace> find_place(std::span<const TensorRule> rules, const ModelTensor& tensor);

}  // namespace tgi::gguf
