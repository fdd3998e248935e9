// LFM 2, with experts or without: short convolutions between layers of attention, which are those
// that have KV heads.
#include <string>
#include <vector>

#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

void read_lfm(ModelReader& model, const char* class_name, const char* model_type) {
  read_sizes(model, class_name, model_type);
  Json& config = model.config;
  const std::vector<int64_t> kv_heads = model.integers_of_layers("attention.head_count_kv");
  Json layer_types = Json::array();
  int64_t num_kv_heads = 0;
  for (const int64_t count : kv_heads) {
    layer_types.push_back(count > 0 ? "full_attention" : "conv");
    if (count > 0) num_kv_heads = count;
  }
  config["layer_types"] = std::move(layer_types);
  config["num_attention_heads"] = model.positive("attention.head_count");
  config["num_key_value_heads"] = num_kv_heads;
  config["norm_eps"] = config.at("rms_norm_eps");
  config["conv_L_cache"] = model.integer("shortconv.l_cache");
  config["conv_bias"] = model.has_tensor("blk.0.shortconv.conv.bias");
  const auto hidden = config.at("hidden_size").get<int64_t>();
  read_rope(model, hidden / config.at("num_attention_heads").get<int64_t>());
  drop_fields(model, {"rms_norm_eps", "partial_rotary_factor"});
  const std::string layer = "model.layers.{layer}.";
  model.name("token_embd", "model.embed_tokens");
  model.name("token_embd_norm", "model.embedding_norm");
  model.name("output", "lm_head");
  model.name("blk.{layer}.attn_norm", layer + "operator_norm");
  model.name("blk.{layer}.ffn_norm", layer + "ffn_norm");
  model.name("blk.{layer}.attn_q", layer + "self_attn.q_proj");
  model.name("blk.{layer}.attn_k", layer + "self_attn.k_proj");
  model.name("blk.{layer}.attn_v", layer + "self_attn.v_proj");
  model.name("blk.{layer}.attn_output", layer + "self_attn.out_proj");
  model.name("blk.{layer}.attn_q_norm", layer + "self_attn.q_layernorm");
  model.name("blk.{layer}.attn_k_norm", layer + "self_attn.k_layernorm");
  model.name("blk.{layer}.shortconv.in_proj", layer + "conv.in_proj");
  model.name("blk.{layer}.shortconv.out_proj", layer + "conv.out_proj");
  model.rules.push_back({.stored = "blk.{layer}.shortconv.conv",
                         .name = layer + "conv.conv",
                         .shape = {hidden, 1, config.at("conv_L_cache").get<int64_t>()}});
  model.name("blk.{layer}.ffn_gate", layer + "feed_forward.w1");
  model.name("blk.{layer}.ffn_down", layer + "feed_forward.w2");
  model.name("blk.{layer}.ffn_up", layer + "feed_forward.w3");
}

}  // namespace

void read_lfm2(ModelReader& model) {
  read_lfm(model, "Lfm2ForCausalLM", "lfm2");
  model.config["block_auto_adjust_ff_dim"] = false;  // the file has the width that came of it
}

void read_lfm2moe(ModelReader& model) {
  read_lfm(model, "Lfm2MoeForCausalLM", "lfm2_moe");
  read_experts(model, "num_experts", "moe_intermediate_size");
  Json& config = model.config;
  expect_gating(model, kGatingSigmoid);
  config["num_dense_layers"] = model.find_integer("leading_dense_block_count").value_or(0);
  config["norm_topk_prob"] = model.find_boolean("expert_weights_norm").value_or(true);
  config["routed_scaling_factor"] = model.find_number("expert_weights_scale").value_or(1.0);
  config["use_expert_bias"] = model.find_layer_with("exp_probs_b.bias").has_value();
  const std::string mlp = "model.layers.{layer}.feed_forward.";
  model.name("blk.{layer}.ffn_gate_inp", mlp + "gate");
  name_choice_bias(model, mlp + "expert_bias");
  model.name("blk.{layer}.ffn_gate_exps", mlp + "experts.{expert}.w1");
  model.name("blk.{layer}.ffn_down_exps", mlp + "experts.{expert}.w2");
  model.name("blk.{layer}.ffn_up_exps", mlp + "experts.{expert}.w3");
}

}  // namespace tgi::gguf
