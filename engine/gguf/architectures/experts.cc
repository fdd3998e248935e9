// Decoders with experts that differ from others in little.
#include <string>

#include "engine/gguf/architectures.h"

namespace tgi::gguf {

// Windows in three of four layers; the fourth has no positions.
void read_afmoe(ModelReader& model) {
  const std::string mlp = kMlp;
  read_decoder(model, "AfmoeForCausalLM", "afmoe");
  read_experts(model, "num_experts", "moe_intermediate_size");
  Json& config = model.config;
  config["mup_enabled"] = true;
  config["sliding_window"] = model.integer("attention.sliding_window");
  config["layer_types"] = read_layer_types(model, 4);
  config["num_shared_experts"] = model.find_integer("expert_shared_count").value_or(0);
  model.pass_over("leading_dense_block_count");
  config["num_dense_layers"] =
      model.find_layer_with("ffn_gate_inp.weight").value_or(model.num_layers());
  config["route_norm"] = model.find_boolean("expert_weights_norm").value_or(true);
  config["route_scale"] = model.find_number("expert_weights_scale").value_or(1.0);
  config["n_group"] = model.find_integer("expert_group_count").value_or(1);
  config["topk_group"] = model.find_integer("expert_group_used_count").value_or(1);
  expect_gating(model, kGatingSigmoid);
  read_attention_bias(model);
  name_outer(model);
  const std::string layer = "model.layers.{layer}.";
  model.name("blk.{layer}.attn_norm", layer + "input_layernorm");
  model.name("blk.{layer}.post_attention_norm", layer + "post_attention_layernorm");
  model.name("blk.{layer}.ffn_norm", layer + "pre_mlp_layernorm");
  model.name("blk.{layer}.post_ffw_norm", layer + "post_mlp_layernorm");
  name_attention(model);
  name_qk_norms(model);
  model.name("blk.{layer}.attn_gate", layer + "self_attn.gate_proj");
  name_mlp(model);
  model.name("blk.{layer}.ffn_gate_inp", mlp + ".router.gate");
  name_choice_bias(model, mlp + ".expert_bias");
  name_experts(model, mlp + ".experts");
  name_shared_experts(model, mlp + ".shared_experts");
}

void read_exaone_moe(ModelReader& model) {
  const std::string mlp = kMlp;
  read_decoder(model, "ExaoneMoEForCausalLM", "exaone_moe");
  read_deepseek_experts(model);
  drop_predicting_layers(model);
  expect_gating(model, kGatingSigmoid);
  model.pass_over("expert_shared_feed_forward_length");  // the count says it
  if (!read_windows(model, 4)) model.config["sliding_window"] = nullptr;
  model.config["mlp_layer_types"] = read_mlp_layer_types(model);
  name_outer(model);
  name_norms(model);
  name_attention(model);
  name_qk_norms(model);
  name_mlp(model);
  model.name("blk.{layer}.ffn_gate_inp", mlp + ".gate");
  name_choice_bias(model, mlp + ".e_score_correction_bias");
  name_experts(model, mlp + ".experts");
  name_shared_experts(model, mlp + ".shared_experts");
}

void read_hunyuan_moe(ModelReader& model) {
  const std::string mlp = kMlp;
  read_decoder(model, "HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe");
  Json& config = model.config;
  config["num_experts"] = model.integer("expert_count");
  config["moe_topk"] = model.integer("expert_used_count");
  config["num_shared_expert"] = model.find_integer("expert_shared_count").value_or(1);
  for (const char* key : {"expert_feed_forward_length", "expert_shared_feed_forward_length"}) {
    config["intermediate_size"] =
        model.find_integer(key).value_or(config.at("intermediate_size").get<int64_t>());
  }
  read_attention_bias(model);
  name_outer(model);
  name_norms(model);
  name_attention(model);
  model.name("blk.{layer}.attn_q_norm", "model.layers.{layer}.self_attn.query_layernorm");
  model.name("blk.{layer}.attn_k_norm", "model.layers.{layer}.self_attn.key_layernorm");
  model.name("blk.{layer}.ffn_gate_inp", mlp + ".gate.wg");
  name_experts(model, mlp + ".experts");
  name_shared_experts(model, mlp + ".shared_mlp");
}

void read_minimax_m2(ModelReader& model) {
  read_decoder(model, "MiniMaxM2ForCausalLM", "minimax_m2");
  read_experts(model, "num_local_experts", "intermediate_size");
  expect_gating(model, kGatingSigmoid);
  Json& config = model.config;
  config["rotary_dim"] =
      model.find_integer("rope.dimension_count").value_or(config.at("head_dim").get<int64_t>());
  drop_fields(model, {"partial_rotary_factor"});
  name_outer(model);
  name_norms(model);
  name_attention(model);
  name_qk_norms(model);
  name_mixtral_experts(model);
  name_choice_bias(model, "model.layers.{layer}.block_sparse_moe.e_score_correction_bias");
}

void read_phimoe(ModelReader& model) {
  read_decoder(model, "PhimoeForCausalLM", "phimoe");
  Json& config = model.config;
  read_experts(model, "num_local_experts", "intermediate_size");
  const auto window = model.find_integer("attention.sliding_window").value_or(0);
  if (window > 0) config["sliding_window"] = window;
  read_attention_bias(model);
  config["lm_head_bias"] = model.has_tensor("output.bias");
  name_outer(model);
  name_norms(model);
  name_attention(model);
  name_mixtral_experts(model);
}

// Every fourth layer reads all of the context, without positions; the others a part of it.
void read_llama4(ModelReader& model) {
  read_decoder(model, "Llama4ForCausalLM", "llama4_text");
  Json& config = model.config;
  config["intermediate_size_mlp"] = config.at("intermediate_size");
  read_experts(model, "num_local_experts", "intermediate_size");
  config["interleave_moe_layer_step"] = model.find_integer("interleave_moe_layer_step").value_or(1);
  config["use_qk_norm"] = config.at("num_local_experts") != 128;  // only the larger has none
  config["no_rope_layer_interval"] = 4;
  read_attention_bias(model);
  name_outer(model);
  name_norms(model);
  name_attention(model);
  const std::string mlp = "model.layers.{layer}.feed_forward";
  name_mlp(model, mlp);
  model.name("blk.{layer}.ffn_gate_inp", mlp + ".router");
  name_expert_stacks(model, mlp + ".experts", "gate_up_proj(0)", "gate_up_proj(1)", "down_proj");
  name_shared_experts(model, mlp + ".shared_expert");
}

}  // namespace tgi::gguf
