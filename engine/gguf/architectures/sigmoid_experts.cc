// Decoders whose experts are chosen by sigmoids and that differ from others in little: dots.llm1,
// Hunyuan 3, Laguna, Ling 2.0; and Mellum, whose layers with a window are rotated as Laguna's are.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

// The rope that was read is that of layers without a window; those with one turn all columns of a
// head, or as many as the file says, by a base that may be another, and are not stretched.
void split_rope(ModelReader& model) {
  Json& config = model.config;
  Json whole = config.value("rope_scaling", Json::object());
  if (!whole.contains("rope_type")) whole["rope_type"] = "default";
  whole["rope_theta"] = config.at("rope_theta");
  Json windowed = {{"rope_type", "default"}};
  windowed["rope_theta"] =
      model.find_number("rope.freq_base_swa").value_or(config.at("rope_theta").get<double>());
  if (config.contains("partial_rotary_factor")) {
    whole["partial_rotary_factor"] = config["partial_rotary_factor"];
  }
  const auto head_dim = config.at("head_dim").get<int64_t>();
  const auto columns = model.find_integer("rope.dimension_count_swa").value_or(head_dim);
  if (columns != head_dim) {
    windowed["partial_rotary_factor"] =
        static_cast<double>(columns) / static_cast<double>(head_dim);
  }
  drop_fields(model, {"rope_theta", "rope_scaling", "partial_rotary_factor"});
  config["rope_parameters"] = {{"full_attention", std::move(whole)},
                               {"sliding_attention", std::move(windowed)}};
}

}  // namespace

void read_dots1(ModelReader& model) {
  read_decoder(model, "Dots1ForCausalLM", "dots1");
  read_deepseek_experts(model);
  expect_gating(model, kGatingSigmoid);
  read_attention_bias(model);
  name_decoder(model);
  name_qk_norms(model);
  name_deepseek_experts(model);
}

// Ling and Ring of version 2, and Sarvam: GLM 4.5's block with norms of the heads of q and k, whose
// experts are chosen as DeepSeek V3's are.
void read_bailingmoe2(ModelReader& model) {
  read_decoder(model, "Glm4MoeForCausalLM", "glm4_moe");
  read_deepseek_experts(model);
  expect_gating(model, kGatingSigmoid);
  model.pass_over("expert_shared_feed_forward_length");  // the count says it
  drop_predicting_layers(model);
  state_rotary_part(model);
  read_attention_bias(model);
  model.config["use_qk_norm"] = true;
  name_decoder(model);
  name_qk_norms(model);
  name_deepseek_experts(model);
}

void read_hy_v3(ModelReader& model) {
  const std::string mlp = kMlp;
  read_decoder(model, "HYV3ForCausalLM", "hy_v3");
  read_experts(model, "num_experts", "moe_intermediate_size");
  Json& config = model.config;
  const auto width = config.value("moe_intermediate_size", int64_t{0});
  const auto shared = model.find_integer("expert_shared_feed_forward_length").value_or(width);
  config["num_shared_experts"] = width > 0 ? shared / width : 1;
  config["router_scaling_factor"] = model.find_number("expert_weights_scale").value_or(1.0);
  expect_gating(model, kGatingSigmoid);
  expect_normed_weights(model);
  for (const char* key : {"expert_shared_count", "leading_dense_block_count"}) {
    model.pass_over(key);  // the tensors say it
  }
  drop_predicting_layers(model);
  config["mlp_layer_types"] = read_mlp_layer_types(model);
  read_attention_bias(model);
  config["mlp_bias"] = model.find_layer_with("ffn_up.bias").has_value() ||
                       model.find_layer_with("ffn_up_shexp.bias").has_value();
  name_decoder(model);
  name_qk_norms(model);
  model.name("blk.{layer}.ffn_gate_inp", mlp + ".router.gate");
  name_bare(model, "blk.{layer}.exp_probs_b", mlp + ".expert_bias", "");
  name_experts(model, mlp + ".experts");
  name_shared_experts(model, mlp + ".shared_mlp");
}

namespace {

// Heads may be counted layer by layer.
void read_laguna_heads(ModelReader& model) {
  Json& config = model.config;
  const std::vector<int64_t> heads = model.integers_of_layers("attention.head_count");
  config["num_attention_heads"] = heads.empty() ? model.integer("attention.head_count") : heads[0];
  config["num_attention_heads_per_layer"] = heads;
  config["num_key_value_heads"] = model.positive("attention.head_count_kv");
  const int64_t head_dim = model.positive("attention.key_length");
  config["head_dim"] = head_dim;
  const int64_t values = model.find_integer("attention.value_length").value_or(head_dim);
  if (values != head_dim) {
    throw Error(Code::kUnsupported,
                fmt::format("{}.attention.value_length: {}, expected that of keys, {}",
                            model.architecture(), values, head_dim));
  }
  // A gate for each head, or for each of its columns.
  const int64_t gates = model.tensor("blk.0.attn_gate.weight").shape.front();
  config["gating"] = gates == config["num_attention_heads"] ? "per-head" : "per-element";
}

}  // namespace

void read_laguna(ModelReader& model) {
  const std::string mlp = kMlp;
  read_sizes(model, "LagunaForCausalLM", "laguna");
  read_laguna_heads(model);
  Json& config = model.config;
  read_rope(model, config.at("head_dim").get<int64_t>());
  split_rope(model);
  (void)read_windows(model, 4, WindowOrder::kFullFirst);
  read_experts(model, "num_experts", "moe_intermediate_size");
  config["shared_expert_intermediate_size"] = model.integer("expert_shared_feed_forward_length");
  config["moe_routed_scaling_factor"] = model.find_number("expert_weights_scale").value_or(1.0);
  expect_gating(model, kGatingSigmoid);
  expect_normed_weights(model);
  for (const char* key : {"expert_shared_count", "leading_dense_block_count"}) {
    model.pass_over(key);  // the tensors say it
  }
  config["mlp_layer_types"] = read_mlp_layer_types(model);
  read_attention_bias(model);
  name_outer(model);
  name_norms(model);
  name_projections(model, "model.layers.{layer}.self_attn");
  name_qk_norms(model);
  model.name("blk.{layer}.attn_gate", "model.layers.{layer}.self_attn.g_proj");
  name_mlp(model);
  model.name("blk.{layer}.ffn_gate_inp", mlp + ".gate");
  name_choice_bias(model, mlp + ".experts.e_score_correction_bias");
  name_experts(model, mlp + ".experts");
  name_shared_experts(model, mlp + ".shared_expert");
}

void read_mellum(ModelReader& model) {
  const std::string mlp = kMlp;
  read_decoder(model, "MellumForCausalLM", "mellum");
  split_rope(model);
  (void)read_windows(model, 4);
  read_experts(model, "num_experts", "moe_intermediate_size");
  model.config["norm_topk_prob"] = true;
  read_attention_bias(model);
  name_outer(model);
  name_norms(model);
  name_attention(model);
  name_qk_norms(model);
  model.name("blk.{layer}.ffn_gate_inp", mlp + ".gate");
  name_experts(model, mlp + ".experts");
}

}  // namespace tgi::gguf
