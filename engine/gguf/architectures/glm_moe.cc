// GLM 4.5 to 4.7: latter layers have experts. What predicts a second token is not used.
#include <string>

#include "engine/gguf/architectures.h"

namespace tgi::gguf {

void read_glm4moe(ModelReader& model) {
  read_decoder(model, "Glm4MoeForCausalLM", "glm4_moe");
  read_deepseek_experts(model);
  expect_gating(model, kGatingSigmoid);
  Json& config = model.config;
  drop_predicting_layers(model);
  model.pass_over("rope.dimension_sections");  // positions of text are alike in every one
  state_rotary_part(model);
  read_attention_bias(model);
  config["use_qk_norm"] = model.has_tensor("blk.0.attn_q_norm.weight");
  name_outer(model);
  model.name("blk.{layer}.attn_norm", "model.layers.{layer}.input_layernorm");
  model.name("blk.{layer}.post_attention_norm", "model.layers.{layer}.post_attention_layernorm");
  name_attention(model);
  name_qk_norms(model);
  name_mlp(model);
  name_deepseek_experts(model);
}

}  // namespace tgi::gguf
