// Qwen 2 and 3 with experts.
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

void name_qwen_experts(ModelReader& model) {
  model.name("blk.{layer}.ffn_gate_inp", "model.layers.{layer}.mlp.gate");
  name_experts(model, "model.layers.{layer}.mlp.experts");
  name_shared_experts(model, "model.layers.{layer}.mlp.shared_expert");
  model.rules.push_back({.stored = "blk.{layer}.ffn_gate_inp_shexp",
                         .name = "model.layers.{layer}.mlp.shared_expert_gate",
                         .shape = {1, model.config.at("hidden_size").get<int64_t>()}});
}

void read_qwen2moe(ModelReader& model) {
  read_decoder(model, "Qwen2MoeForCausalLM", "qwen2_moe");
  read_experts(model, "num_experts", "moe_intermediate_size");
  Json& config = model.config;
  config["norm_topk_prob"] = model.find_boolean("expert_weights_norm").value_or(false);
  const auto shared = model.find_integer("expert_shared_feed_forward_length");
  config["shared_expert_intermediate_size"] =
      shared ? *shared : config.at("intermediate_size").get<int64_t>();
  name_outer(model);
  name_norms(model);
  name_attention(model);
  name_qwen_experts(model);
}

void read_qwen3moe(ModelReader& model) {
  read_decoder(model, "Qwen3MoeForCausalLM", "qwen3_moe");
  read_experts(model, "num_experts", "moe_intermediate_size");
  model.config["norm_topk_prob"] = model.find_boolean("expert_weights_norm").value_or(true);
  read_attention_bias(model);
  name_outer(model);
  name_norms(model);
  name_attention(model);
  name_qk_norms(model);
  model.name("blk.{layer}.ffn_gate_inp", "model.layers.{layer}.mlp.gate");
  name_experts(model, "model.layers.{layer}.mlp.experts");
}

}  // namespace tgi::gguf
