// Granite 4 and Bamba: Mamba 2 in most layers.
#include <string>
#include <vector>

#include "engine/gguf/architectures.h"
#include "engine/gguf/state_rules.h"

namespace tgi::gguf {

namespace {

void read_mixers(ModelReader& model, const char* class_name, const char* model_type) {
  read_sizes(model, class_name, model_type);
  const std::vector<bool> has_attention = read_heads_of_layers(model);
  Json& config = model.config;
  Json types = Json::array();
  Json numbers = Json::array();
  for (size_t i = 0; i < has_attention.size(); ++i) {
    types.push_back(has_attention[i] ? "attention" : "mamba");
    if (has_attention[i]) numbers.push_back(i);
  }
  config["layer_types"] = std::move(types);
  config["attn_layer_indices"] = std::move(numbers);
  read_rope(model, config.at("head_dim").get<int64_t>());
  read_attention_bias(model);
  read_mamba2_state(model, hybrid_state_fields());
  config["mamba_expand"] = state_expansion(model);
}

void read_bamba(ModelReader& model) {
  read_mixers(model, "BambaForCausalLM", "bamba");
  state_rotary_part(model);
  model.config["mlp_bias"] = model.has_tensor("blk.0.ffn_up.bias");
  name_hybrid_block(model);
  model.name("blk.{layer}.ffn_norm", "model.layers.{layer}.pre_ff_layernorm");
}

void read_granite4(ModelReader& model, bool has_positions) {
  read_mixers(model, "GraniteMoeHybridForCausalLM", "granitemoehybrid");
  read_granite_multipliers(model);
  Json& config = model.config;
  config["position_embedding_type"] = has_positions ? "rope" : "nope";
  const auto shared = model.find_integer("expert_shared_feed_forward_length").value_or(0);
  read_experts(model, "num_local_experts", "intermediate_size");
  config["shared_intermediate_size"] =
      shared > 0 ? shared : config.at("intermediate_size").get<int64_t>();
  drop_fields(model, {"attn_layer_indices"});
  name_outer(model);
  name_norms(model);
  name_granite_experts(model);
  const std::string mlp = "model.layers.{layer}.shared_mlp.";
  model.name("blk.{layer}.ffn_gate", mlp + "input_linear(0)");
  model.name("blk.{layer}.ffn_up", mlp + "input_linear(1)");
  model.name("blk.{layer}.ffn_down", mlp + "output_linear");
}

}  // namespace

void read_granitehybrid(ModelReader& model) {
  // What says whether there are positions; Bamba's scores have no scale of their own.
  const bool has_positions = model.find_boolean("rope.scaling.finetuned").value_or(true);
  if (has_positions && !model.has("attention.scale")) {
    read_bamba(model);
  } else {
    read_granite4(model, has_positions);
  }
  name_rotated_attention(model);
  drop_fields(model, {"head_dim"});
  name_mamba2(model, "model.layers.{layer}.mamba");
}

}  // namespace tgi::gguf
