// Phi 2, and Phi 3 and 4, which have q, k and v in one matrix, gate and up in another.
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

void read_phi2(ModelReader& model) {
  read_decoder(model, "PhiForCausalLM", "phi");
  read_layer_norm(model, "layer_norm_eps");
  read_width_of_tensor(model);
  state_rotary_part(model);
  model.name("token_embd", "model.embed_tokens");
  model.name("output", "lm_head");
  model.name("output_norm", "model.final_layernorm");
  model.name("blk.{layer}.attn_norm", "model.layers.{layer}.input_layernorm");
  name_attention(model);
  model.rules.back().name = "model.layers.{layer}.self_attn.dense";
  model.name("blk.{layer}.ffn_up", "model.layers.{layer}.mlp.fc1");
  model.name("blk.{layer}.ffn_down", "model.layers.{layer}.mlp.fc2");
  drop_fields(model, {"head_dim"});
}

void read_phi3(ModelReader& model) {
  read_decoder(model, "Phi3ForCausalLM", "phi3");
  if (const auto window = model.find_integer("attention.sliding_window"); window && *window > 0) {
    model.config["sliding_window"] = *window;
  }
  name_outer(model);
  name_norms(model);
  model.name("blk.{layer}.attn_qkv", "model.layers.{layer}.self_attn.qkv_proj");
  model.name("blk.{layer}.attn_output", "model.layers.{layer}.self_attn.o_proj");
  model.name("blk.{layer}.ffn_up", "model.layers.{layer}.mlp.gate_up_proj");
  model.name("blk.{layer}.ffn_down", "model.layers.{layer}.mlp.down_proj");
}

}  // namespace tgi::gguf
