// Small models for tests, from JSON text and numbers that say where they came from.
#pragma once

#include <map>
#include <string>

#include "engine/model/architecture.h"
#include "engine/model/tensor_table.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi {

inline MemorySource config_files(const std::string& config, const std::string& generation = "") {
  std::map<std::string, std::string> files = {{"config.json", config}};
  if (!generation.empty()) files.emplace("generation_config.json", generation);
  return MemorySource(std::move(files));
}

inline LoadedConfig load_config(const Json& config) {
  return load_model_config(config_files(config.dump()));
}

// 6 heads of 4, 2 KV heads: sizes that no two dimensions share.
inline Json small_llama() {
  return Json{{"architectures", {"LlamaForCausalLM"}},
              {"vocab_size", 11},
              {"hidden_size", 10},
              {"intermediate_size", 14},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 6},
              {"num_key_value_heads", 2},
              {"head_dim", 4},
              {"torch_dtype", "float32"}};
}

inline Json small_gpt2() {
  return Json{{"architectures", {"GPT2LMHeadModel"}},
              {"vocab_size", 11},
              {"n_embd", 12},
              {"n_layer", 1},
              {"n_head", 2},
              {"n_positions", 9}};
}

// All tensors of the model in f32: element i of tensor t is t + i / 1000.
inline std::vector<TestTensor> small_tensors(const LoadedConfig& model) {
  std::vector<TestTensor> out;
  const TensorTable table(model);
  for (const TensorEntry& entry : table.entries()) {
    std::vector<float> values(static_cast<size_t>(entry.rows * entry.cols));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(out.size()) + static_cast<float>(i) / 1000.0F;
    }
    std::string shape = "[" + std::to_string(entry.cols) + "]";
    if (entry.per_channel > 0 || entry.spec->is_scalar) {
      shape = "[";
      for (const int64_t size : entry.vector_shape()) {
        shape += (shape.size() == 1 ? "" : ",") + std::to_string(size);
      }
      shape += "]";
    }
    if (!entry.is_vector()) {
      const bool transposed = entry.spec->transposed;
      shape = "[" + std::to_string(transposed ? entry.cols : entry.rows) + "," +
              std::to_string(transposed ? entry.rows : entry.cols) + "]";
    }
    out.push_back({entry.name, "F32", shape, f32_bytes(values)});
  }
  return out;
}

inline MemorySource weight_files(const std::vector<TestTensor>& tensors) {
  std::map<std::string, std::string> files;
  files.emplace("model.safetensors", build_safetensors(tensors));
  return MemorySource(std::move(files));
}

}  // namespace tgi
