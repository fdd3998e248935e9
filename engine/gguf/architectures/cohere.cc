// Command R and its followers: one norm for both branches.
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

void read_cohere(ModelReader& model) {
  read_layer_norm(model, "layer_norm_eps");
  if (const auto scale = model.find_number("logit_scale")) model.config["logit_scale"] = *scale;
  read_attention_bias(model);
  name_outer(model);
  model.name("blk.{layer}.attn_norm", "model.layers.{layer}.input_layernorm");
  name_attention(model);
  name_mlp(model);
}

}  // namespace

void read_command_r(ModelReader& model) {
  read_decoder(model, "CohereForCausalLM", "cohere");
  read_cohere(model);
  model.config["use_qk_norm"] = model.has_tensor("blk.0.attn_q_norm.weight");
  name_qk_norms(model);
  drop_fields(model, {"head_dim"});
}

void read_cohere2(ModelReader& model) {
  read_decoder(model, "Cohere2ForCausalLM", "cohere2");
  model.config["sliding_window"] = model.integer("attention.sliding_window");
  model.config["layer_types"] = read_layer_types(model, 4);
  read_cohere(model);
}

}  // namespace tgi::gguf
