// GLM 4 of 2024 and of 2025: gate and up are one matrix.
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

void name_glm(ModelReader& model) {
  state_rotary_part(model);
  read_attention_bias(model);
  name_outer(model);
  name_attention(model);
  model.name("blk.{layer}.ffn_up", "model.layers.{layer}.mlp.gate_up_proj");
  model.name("blk.{layer}.ffn_down", "model.layers.{layer}.mlp.down_proj");
}

}  // namespace

void read_chatglm(ModelReader& model) {
  read_decoder(model, "GlmForCausalLM", "glm");
  name_glm(model);
  name_norms(model);
}

void read_glm4(ModelReader& model) {
  read_decoder(model, "Glm4ForCausalLM", "glm4");
  name_glm(model);
  name_norms(model);
  model.name("blk.{layer}.post_attention_norm", "model.layers.{layer}.post_self_attn_layernorm");
  model.name("blk.{layer}.post_ffw_norm", "model.layers.{layer}.post_mlp_layernorm");
}

}  // namespace tgi::gguf
