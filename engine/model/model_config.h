// What a model is, in the field's words, after its family has read config.json: sizes and traits of
// the whole, and a plan for each layer. The forward pass looks at nothing else, and at no family's
// name. Defaults are those of a Llama block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/device/backend.h"

namespace tgi {

inline constexpr int32_t kNoRope = -1;

// In what layers of one model differ.
struct LayerPlan {
  int32_t sliding_window = 0;  // tokens; 0: none
  int32_t rope = kNoRope;      // which of ModelConfig::ropes rotates q and k
  PositionScale query_scale{};

  bool operator==(const LayerPlan&) const = default;
};

// What the norm of q and k is taken over.
enum class QkNorm : uint8_t {
  kHead,  // each head by itself; one weight of head_dim for all, or one for each head
  kRow,   // all heads of a token together
};

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

  std::vector<LayerPlan> layers;  // (num_layers)
  std::vector<RopeSpec> ropes;

  NormKind norm_kind = NormKind::kRms;
  float norm_eps = 1e-5F;
  float norm_weight_offset = 0.0F;  // 1 where the checkpoint stores weight - 1
  bool norms_have_weights = true;   // false: those of stream and head only divide
  // Attention and MLP of a layer read the same stream, and their sum is added to it. Else the MLP
  // reads what attention has been added to.
  bool parallel_branches = false;

  Activation activation = Activation::kSilu;
  bool gated_mlp = true;

  bool attention_bias = false;         // of q, k, v and o, where the family leaves it to the config
  bool attention_output_bias = false;  // of o, where the family has a field for it
  bool mlp_bias = false;               // of gate, up and down, likewise

  bool learned_positions = false;

  // Set by the reader: 1 / sqrt(head_dim) unless the family says otherwise.
  float attention_scale = 0.0F;
  float attention_softcap = 0.0F;
  float qkv_clip = 0.0F;  // q, k and v are clamped to -clip..clip; 0: off
  // Of q and k, where they have such weights.
  QkNorm qk_norm = QkNorm::kHead;
  NormKind qk_norm_kind = NormKind::kRms;
  bool qk_norm_after_rope = false;  // of kHead
  bool has_qk_norm = false;         // where the family leaves it to the config

  float embedding_multiplier = 1.0F;
  float residual_multiplier = 1.0F;  // of every branch
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

// The longest sliding window of a layer; 0 where none has one.
inline int32_t longest_window(const ModelConfig& config) {
  int32_t longest = 0;
  for (const LayerPlan& layer : config.layers) longest = std::max(longest, layer.sliding_window);
  return longest;
}

}  // namespace tgi
