// What a model is, in the field's words, after its family has read config.json: sizes and traits.
// The forward pass looks at nothing else, and at no family's name. Defaults are those of a Llama
// block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/device/backend.h"

namespace tgi {

struct ModelConfig {
  std::string architecture;  // "LlamaForCausalLM"

  int32_t vocab_size = 0;
  int32_t hidden_size = 0;
  int32_t intermediate_size = 0;
  int32_t num_layers = 0;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t max_positions = 0;  // the longest context the model is meant for

  NormKind norm_kind = NormKind::kRms;
  float norm_eps = 1e-5F;
  float norm_weight_offset = 0.0F;

  Activation activation = Activation::kSilu;
  bool gated_mlp = true;

  bool attention_bias = false;  // of q, k, v and o, where the family leaves it to the config
  bool mlp_bias = false;        // of gate, up and down, likewise

  bool learned_positions = false;
  bool rotary = true;
  RopeSpec rope;

  // Set by the reader: 1 / sqrt(head_dim) unless the family says otherwise.
  float attention_scale = 0.0F;
  float attention_softcap = 0.0F;
  int32_t sliding_window = 0;           // tokens; 0: none
  std::vector<bool> layer_uses_window;  // (num_layers); empty: every layer when sliding_window > 0

  float embedding_multiplier = 1.0F;
  float logit_scale = 1.0F;
  float logit_softcap = 0.0F;
  bool tied_embeddings = false;

  DType checkpoint_dtype = DType::kF32;  // dtype / torch_dtype; what "auto" loads as
  std::vector<int32_t> eos_token_ids;    // generation_config.json before config.json
  int32_t bos_token_id = -1;
};

// The widest row that a matrix of the model is multiplied with.
inline int32_t max_matmul_cols(const ModelConfig& config) {
  return std::max(
      {config.hidden_size, config.intermediate_size, config.num_heads * config.head_dim});
}

}  // namespace tgi
