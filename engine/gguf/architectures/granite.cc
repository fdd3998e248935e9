// Granite, with experts or without, and MiniCPM, which has the same multipliers.
#include <cmath>
#include <string>
#include <vector>

#include "engine/gguf/architectures.h"

namespace tgi::gguf {

void read_granite_multipliers(ModelReader& model) {
  const auto take = [&](const char* key, const char* field) {
    if (const auto value = model.find_number(key)) model.config[field] = *value;
  };
  take("attention.scale", "attention_multiplier");
  take("embedding_scale", "embedding_multiplier");
  take("residual_scale", "residual_multiplier");
  take("logit_scale", "logits_scaling");
}

void name_granite_experts(ModelReader& model) {
  const std::string moe = "model.layers.{layer}.block_sparse_moe.";
  model.name("blk.{layer}.ffn_gate_inp", moe + "router.layer");
  model.name("blk.{layer}.ffn_gate_exps", moe + "input_linear(0)");
  model.name("blk.{layer}.ffn_up_exps", moe + "input_linear(1)");
  model.name("blk.{layer}.ffn_down_exps", moe + "output_linear");
  model.name("blk.{layer}.ffn_gate_shexp", "model.layers.{layer}.shared_mlp.input_linear(0)");
  model.name("blk.{layer}.ffn_up_shexp", "model.layers.{layer}.shared_mlp.input_linear(1)");
  model.name("blk.{layer}.ffn_down_shexp", "model.layers.{layer}.shared_mlp.output_linear");
}

namespace {

void read_multipliers(ModelReader& model) {
  read_granite_multipliers(model);
  name_outer(model);
  name_norms(model);
  name_rotated_attention(model);
}

// 1 is what stands for no attention_multiplier, not for the root of head_dim.
void read_score_scale(ModelReader& model) {
  if (model.has("attention.scale")) return;
  const auto head_dim = model.config.at("head_dim").get<double>();
  model.config["attention_multiplier"] = 1.0 / std::sqrt(head_dim);
}

// Gate and up of the one that all tokens go to are one matrix here too.
void name_granite_swa_experts(ModelReader& model) {
  const std::string moe = "model.layers.{layer}.block_sparse_moe.";
  model.name("blk.{layer}.ffn_gate_inp", moe + "router");
  name_gate_up_stacks(model, moe + "experts");
  model.name("blk.{layer}.ffn_up_shexp", "model.layers.{layer}.shared_mlp.input_linear");
  model.name("blk.{layer}.ffn_down_shexp", "model.layers.{layer}.shared_mlp.output_linear");
}

}  // namespace

void read_granite(ModelReader& model) {
  read_decoder(model, "GraniteForCausalLM", "granite");
  read_multipliers(model);
  read_score_scale(model);
  read_biases(model);
  name_mlp(model);
}

void read_granitemoe(ModelReader& model) {
  const auto shared = model.find_integer("expert_shared_feed_forward_length").value_or(0);
  read_decoder(model, shared > 0 ? "GraniteMoeSharedForCausalLM" : "GraniteMoeForCausalLM",
               shared > 0 ? "granitemoeshared" : "granitemoe");
  read_multipliers(model);
  read_score_scale(model);
  read_experts(model, "num_local_experts", "intermediate_size");
  if (shared > 0) model.config["shared_intermediate_size"] = shared;
  read_attention_bias(model);
  name_granite_experts(model);
  drop_fields(model, {"head_dim"});
}

// Windows in most layers, a sink for each head; in some layers q and k may not be rotated.
void read_granite_swa(ModelReader& model) {
  const bool has_experts = model.find_integer("expert_count").value_or(0) > 0;
  const auto shared = model.find_integer("expert_shared_feed_forward_length").value_or(0);
  if (has_experts) {
    read_decoder(model, "GraniteMoeSWAForCausalLM", "granitemoe_swa");
    read_experts(model, "num_local_experts", "intermediate_size");
    if (shared > 0) model.config["shared_intermediate_size"] = shared;
    read_attention_bias(model);
    name_granite_swa_experts(model);
  } else {
    read_decoder(model, "GraniteSWAForCausalLM", "granite_swa");
    read_biases(model);
    name_mlp(model);
  }
  Json& config = model.config;
  config["sliding_window"] = model.integer("attention.sliding_window");
  config["layer_types"] = read_layer_types(model, 4);
  const std::vector<bool> rotates = model.booleans_of_layers("attention.rope_pattern");
  Json bases = Json::array();
  for (const bool is_rotated : rotates) {
    bases.push_back(is_rotated ? config.at("rope_theta").get<double>() : 0.0);
  }
  if (!bases.empty()) config["layer_rope_theta"] = std::move(bases);
  read_multipliers(model);
  read_score_scale(model);
  name_bare(model, "blk.{layer}.attn_sinks", "model.layers.{layer}.self_attn.sinks");
  drop_fields(model, {"head_dim"});
}

void read_minicpm(ModelReader& model) {
  read_granite(model);
  Json& config = model.config;
  const auto hidden = config.at("hidden_size").get<double>();
  const auto layers = static_cast<double>(model.num_layers());
  // What files from before these fields were meant with.
  if (!model.has("embedding_scale")) config["embedding_multiplier"] = 12.0;
  if (!model.has("residual_scale")) config["residual_multiplier"] = 1.4 / std::sqrt(layers);
  if (!model.has("logit_scale")) config["logits_scaling"] = hidden / 256.0;
}

}  // namespace tgi::gguf
