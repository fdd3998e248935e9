// Command R and its followers: one norm for both branches.
#include <string>

#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

void read_cohere(ModelReader& model) {
  read_layer_norm(model, "layer_norm_eps");
  if (const auto scale = model.find_number("logit_scale")) model.config["logit_scale"] = *scale;
  read_attention_bias(model);
  name_outer(model);
  model.name("blk.{layer}.attn_norm", "model.layers.{layer}.input_layernorm");
  name_attention(model);
  name_mlp(model);
}

}  // namespace

void read_command_r(ModelReader& model) {
  read_decoder(model, "CohereForCausalLM", "cohere");
  read_cohere(model);
  model.config["use_qk_norm"] = model.has_tensor("blk.0.attn_q_norm.weight");
  name_qk_norms(model);
  drop_fields(model, {"head_dim"});
}

void read_cohere2(ModelReader& model) {
  read_decoder(model, "Cohere2ForCausalLM", "cohere2");
  model.config["sliding_window"] = model.integer("attention.sliding_window");
  model.config["layer_types"] = read_layer_types(model, 4);
  read_cohere(model);
}

// Files are of those alone whose experts that all tokens go to are averaged with the others.
void read_cohere2moe(ModelReader& model) {
  read_decoder(model, "Cohere2MoeForCausalLM", "cohere2_moe");
  Json& config = model.config;
  const bool has_dense = config.contains("intermediate_size");
  if (has_dense) config["prefix_dense_intermediate_size"] = config["intermediate_size"];
  read_experts(model, "num_experts", "intermediate_size");
  const auto shared = model.find_integer("expert_shared_count").value_or(0);
  config["num_shared_experts"] = shared;
  model.pass_over("expert_shared_feed_forward_length");  // the count says it
  // As llama.cpp has it where the file doesn't say.
  const bool is_softmax = model.find_integer("expert_gating_func").value_or(0) == kGatingSoftmax;
  if (!is_softmax) expect_gating(model, kGatingSigmoid);
  config["expert_selection_fn"] = is_softmax ? "softmax" : "sigmoid";
  config["norm_topk_prob"] = model.find_boolean("expert_weights_norm").value_or(false);
  model.pass_over("leading_dense_block_count");
  drop_predicting_layers(model);
  config["mlp_layer_types"] = read_mlp_layer_types(model);
  config["sliding_window"] = model.integer("attention.sliding_window");
  config["layer_types"] = read_layer_types(model, 4);
  read_cohere(model);
  const std::string mlp = kMlp;
  model.name("blk.{layer}.ffn_gate_inp", mlp + ".gate");
  name_experts(model, mlp + ".experts");
  name_shared_experts(model, mlp + ".shared_experts");
}

}  // namespace tgi::gguf
