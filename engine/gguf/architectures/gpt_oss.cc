// gpt-oss: gate and up of experts are two stacks, elsewhere by turns in one.
#include <string>

#include "engine/gguf/architectures.h"

namespace tgi::gguf {

void read_gpt_oss(ModelReader& model) {
  read_decoder(model, "GptOssForCausalLM", "gpt_oss");
  Json& config = model.config;
  read_experts(model, "num_local_experts", "intermediate_size");
  read_attention_bias(model);
  config["sliding_window"] = model.integer("attention.sliding_window");
  config["layer_types"] = read_layer_types(model, 2);
  if (config.contains("rope_scaling")) config["rope_scaling"]["truncate"] = false;
  name_outer(model);
  model.name("blk.{layer}.attn_norm", "model.layers.{layer}.input_layernorm");
  model.name("blk.{layer}.post_attention_norm", "model.layers.{layer}.post_attention_layernorm");
  name_attention(model);
  name_bare(model, "blk.{layer}.attn_sinks", "model.layers.{layer}.self_attn.sinks");
  const std::string mlp = "model.layers.{layer}.mlp.";
  model.name("blk.{layer}.ffn_gate_inp", mlp + "router");
  name_expert_stacks(model, mlp + "experts", "gate_up_proj[0]", "gate_up_proj[1]", "down_proj");
}

}  // namespace tgi::gguf
