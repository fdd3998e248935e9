// OLMo 1 to 3, and with experts.
#include "engine/gguf/model_reader.h"

namespace tgi::gguf {

void read_olmo(ModelReader& model);
void read_olmo2(ModelReader& model);
void read_olmoe(ModelReader& model);

void read_olmo(ModelReader& model) {
  read_decoder(model, "OlmoForCausalLM", "olmo");
  model.pass_over("attention.layer_norm_epsilon");  // the class has one
  if (const auto limit = model.find_number("attention.clamp_kqv"))
    model.config["clip_qkv"] = *limit;
  read_attention_bias(model);
  name_outer(model);
  name_rotated_attention(model);
  name_mlp(model);
}

void read_olmo2(ModelReader& model) {
  const auto window = model.find_integer("attention.sliding_window").value_or(0);
  read_decoder(model, window > 0 ? "Olmo3ForCausalLM" : "Olmo2ForCausalLM",
               window > 0 ? "olmo3" : "olmo2");
  if (window > 0) {
    model.config["sliding_window"] = window;
    model.config["layer_types"] = read_layer_types(model, 4);
  }
  read_attention_bias(model);
  name_outer(model);
  name_attention(model);
  name_qk_norms(model);
  model.name("blk.{layer}.post_attention_norm", "model.layers.{layer}.post_attention_layernorm");
  model.name("blk.{layer}.post_ffw_norm", "model.layers.{layer}.post_feedforward_layernorm");
  name_mlp(model);
}

void read_olmoe(ModelReader& model) {
  read_decoder(model, "OlmoeForCausalLM", "olmoe");
  read_experts(model, "num_experts", "intermediate_size");
  read_attention_bias(model);
  name_outer(model);
  name_norms(model);
  name_attention(model);
  name_qk_norms(model);
  model.name("blk.{layer}.ffn_gate_inp", "model.layers.{layer}.mlp.gate");
  name_experts(model, "model.layers.{layer}.mlp.experts");
  drop_fields(model, {"head_dim"});
}

}  // namespace tgi::gguf
