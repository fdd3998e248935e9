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
  name_hybrid_block(model);
  // Some files have it without its ending.
  const bool has_ending = model.has_tensor("blk.0.ffn_norm.weight");
  model.name("blk.{layer}.ffn_norm",
             layer + (has_ending ? "pre_ff_layernorm" : "pre_ff_layernorm.weight"));
  name_attention(model);
  name_mamba2(model, layer + "mamba");
}

}  // namespace tgi::gguf
