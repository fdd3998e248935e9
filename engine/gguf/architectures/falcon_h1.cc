// Falcon-H1: attention and Mamba 2 in every layer. Its multipliers are in the weights.
#include <string>

#include "engine/gguf/architectures.h"
#include "engine/gguf/state_rules.h"

namespace tgi::gguf {

void read_falcon_h1(ModelReader& model) {
  read_decoder(model, "FalconH1ForCausalLM", "falcon_h1");
  read_biases(model);
  StateFields fields = hybrid_state_fields();
  fields.out_bias = "projectors_bias";
  read_mamba2_state(model, fields);
  Json& config = model.config;
  config["mamba_d_ssm"] = model.positive("ssm.inner_size");
  config["mamba_rms_norm"] = model.find_layer_with("ssm_norm.weight").has_value();
  config["mamba_norm_before_gate"] = false;
  const std::string layer = "model.layers.{layer}.";
  model.name("token_embd", "model.embed_tokens");
  model.name("output", "lm_head");
  model.name("output_norm", "model.final_layernorm");
  model.name("blk.{layer}.attn_norm", layer + "input_layernorm");
  // Some files have it without its ending.
  const bool has_ending = model.has_tensor("blk.0.ffn_norm.weight");
  model.name("blk.{layer}.ffn_norm",
             layer + (has_ending ? "pre_ff_layernorm" : "pre_ff_layernorm.weight"));
  name_attention(model);
  name_mamba2(model, layer + "mamba");
  model.name("blk.{layer}.ffn_gate", layer + "feed_forward.gate_proj");
  model.name("blk.{layer}.ffn_up", layer + "feed_forward.up_proj");
  model.name("blk.{layer}.ffn_down", layer + "feed_forward.down_proj");
}

}  // namespace tgi::gguf
