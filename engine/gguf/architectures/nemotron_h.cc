// Nemotron-H, with experts or without: each layer is one branch, which its tensors tell.
#include <fmt/format.h>

#include <string>

#include "engine/gguf/architectures.h"
#include "engine/gguf/state_rules.h"

namespace tgi::gguf {

namespace {

std::string read_pattern(const ModelReader& model, int64_t num_layers) {
  std::string out;
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    const auto has = [&](const char* tensor) {
      return model.has_tensor(fmt::format("blk.{}.{}.weight", layer, tensor));
    };
    const bool has_attention = has("attn_q") || has("attn_qkv");
    out += has("ssm_in") ? 'M' : has_attention ? '*' : has("ffn_gate_inp") ? 'E' : '-';
  }
  return out;
}

void read_nemotron_mixers(ModelReader& model) {
  read_sizes(model, "NemotronHForCausalLM", "nemotron_h");
  (void)read_heads_of_layers(model);
  drop_predicting_layers(model);
  read_layer_norm(model, "layer_norm_epsilon");
  for (const char* key : {"attention.layer_norm_rms_epsilon", "rope.dimension_count",
                          "rope.scaling.finetuned", "rope.freq_base"}) {
    model.pass_over(key);  // attention has no positions
  }
  drop_fields(model, {"rms_norm_eps"});
  read_mamba2_state(model, {.num_heads = "mamba_num_heads",
                            .head_dim = "mamba_head_dim",
                            .state_size = "ssm_state_size",
                            .num_groups = "n_groups",
                            .conv_kernel = "conv_kernel",
                            .conv_bias = "use_conv_bias",
                            .in_bias = "use_bias"});
  Json& config = model.config;
  config["hybrid_override_pattern"] =
      read_pattern(model, config.at("num_hidden_layers").get<int64_t>());
  config["mlp_bias"] =
      model.find_layer_with("ffn_up.bias") || model.find_layer_with("ffn_up_shexp.bias");
  name_backbone(model);
  name_mamba2(model, kBackboneMixer);
  name_projections(model, kBackboneMixer);
  const std::string mixer = kBackboneMixer;
  model.name("blk.{layer}.ffn_up", mixer + ".up_proj");
  model.name("blk.{layer}.ffn_down", mixer + ".down_proj");
}

}  // namespace

void read_nemotron_h(ModelReader& model) {
  read_nemotron_mixers(model);
}

void read_nemotron_h_moe(ModelReader& model) {
  read_nemotron_mixers(model);
  read_deepseek_experts(model);
  expect_gating(model, kGatingSigmoid);
  Json& config = model.config;
  config["moe_shared_expert_intermediate_size"] =
      model.find_integer("expert_shared_feed_forward_length").value_or(0);
  if (config.at("moe_shared_expert_intermediate_size") == 0) config["n_shared_experts"] = 0;
  if (const auto width = model.find_integer("moe_latent_size")) config["moe_latent_size"] = *width;
  name_deepseek_experts(model, kBackboneMixer);
  const std::string mixer = kBackboneMixer;
  model.name("blk.{layer}.ffn_latent_down", mixer + ".fc1_latent_proj");
  model.name("blk.{layer}.ffn_latent_up", mixer + ".fc2_latent_proj");
}

}  // namespace tgi::gguf
