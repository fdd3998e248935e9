// Jamba: Mamba in most layers, attention without positions in the others, experts in some.
#include <string>
#include <vector>

#include "engine/gguf/architectures.h"
#include "engine/gguf/state_rules.h"

namespace tgi::gguf {

void read_jamba(ModelReader& model) {
  read_sizes(model, "JambaForCausalLM", "jamba");
  const std::vector<bool> has_attention = read_heads_of_layers(model);
  Json& config = model.config;
  const Stride attention = stride_of(has_attention, "jamba.attention.head_count_kv");
  config["attn_layer_period"] = attention.period;
  config["attn_layer_offset"] = attention.offset;
  const Stride experts =
      stride_of(layers_with(model, "ffn_gate_inp.weight"), "layers with tensors ffn_gate_inp");
  config["expert_layer_period"] = experts.period;
  config["expert_layer_offset"] = experts.offset;
  read_experts(model, "num_experts", "intermediate_size");
  read_mamba1_state(model,
                    {.state_size = "mamba_d_state",
                     .conv_kernel = "mamba_d_conv",
                     .conv_bias = "mamba_conv_bias",
                     .in_bias = "mamba_proj_bias"},
                    "mamba_dt_rank");
  config["mamba_expand"] = state_expansion(model);
  drop_fields(model, {"head_dim"});
  const std::string layer = "model.layers.{layer}.";
  name_hybrid_block(model);
  model.name("blk.{layer}.ffn_norm", layer + "pre_ff_layernorm");
  name_projections(model, layer + "self_attn");
  name_mamba1(model, layer + "mamba");
  for (const std::string part : {"dt", "b", "c"}) {
    model.name("blk.{layer}.ssm_" + part + "_norm", layer + "mamba." + part + "_layernorm");
  }
  const std::string mlp = layer + "feed_forward";
  model.name("blk.{layer}.ffn_gate_inp", mlp + ".router");
  name_experts(model, mlp + ".experts");
}

}  // namespace tgi::gguf
