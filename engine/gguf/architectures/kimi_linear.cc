// Kimi Linear: the gated delta rule in most layers, DeepSeek's latent attention in those that have
// heads of keys, and its experts behind the first ones.
#include <string>
#include <vector>

#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

void name_delta_rule(ModelReader& model, int64_t channels) {
  const std::string attention = "model.layers.{layer}.self_attn.";
  model.name("blk.{layer}.attn_k", attention + "k_proj");
  model.name("blk.{layer}.attn_v", attention + "v_proj");
  for (const char* one : {"q", "k", "v"}) {
    model.rules.push_back({.stored = std::string("blk.{layer}.ssm_conv1d_") + one,
                           .name = attention + one + "_conv1d",
                           .shape = {channels, 1, model.positive("ssm.conv_kernel")}});
  }
  model.name("blk.{layer}.ssm_beta", attention + "b_proj");
  model.name("blk.{layer}.ssm_f_a", attention + "f_a_proj");
  model.name("blk.{layer}.ssm_f_b", attention + "f_b_proj");
  model.name("blk.{layer}.ssm_g_a", attention + "g_a_proj");
  model.name("blk.{layer}.ssm_g_b", attention + "g_b_proj");
  name_bare(model, "blk.{layer}.ssm_dt", attention + "dt_bias", ".bias");
  model.name("blk.{layer}.ssm_a", attention + "A_log", {}, Change::kMinusExp);
  model.name("blk.{layer}.ssm_norm", attention + "o_norm");
}

// Which layers are which is said by their heads of keys.
void read_mixers(ModelReader& model) {
  Json types = Json::array();
  for (const int64_t heads : model.integers_of_layers("attention.head_count_kv")) {
    types.push_back(heads > 0 ? "full_attention" : "linear_attention");
  }
  model.config["layer_types"] = std::move(types);
}

}  // namespace

void read_kimi_linear(ModelReader& model) {
  read_sizes(model, "KimiLinearForCausalLM", "kimi_linear");
  read_latents(model);
  read_mixers(model);
  read_deepseek_experts(model);
  expect_gating(model, kGatingSigmoid);
  expect_normed_weights(model);
  Json& config = model.config;
  config["norm_topk_prob"] = true;  // also where the file doesn't say it
  const int64_t layer = model.find_layer_with("ssm_beta.weight").value_or(0);
  const int64_t num_heads =
      model.tensor("blk." + std::to_string(layer) + ".ssm_beta.weight").shape.front();
  const int64_t head_dim = model.positive("kda.head_dim");
  config["linear_num_heads"] = num_heads;
  config["linear_head_dim"] = head_dim;
  config["linear_conv_kernel_dim"] = model.positive("ssm.conv_kernel");
  const std::string moe = "model.layers.{layer}.block_sparse_moe.";
  name_outer(model);
  name_norms(model);
  name_latents(model);
  name_delta_rule(model, num_heads * head_dim);
  name_mlp(model);
  name_mixtral_experts(model);
  name_choice_bias(model, moe + "gate.e_score_correction_bias");
  name_shared_experts(model, moe + "shared_experts");
}

}  // namespace tgi::gguf
