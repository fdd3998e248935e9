// StarCoder 2, and CodeShell, which has its block and stores its tied matrix as the head.
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

void read_starcoder2(ModelReader& model) {
  read_decoder(model, "Starcoder2ForCausalLM", "starcoder2");
  read_layer_norm(model, "norm_epsilon");
  model.config["use_bias"] = model.has_tensor("blk.0.attn_output.bias");
  model.config["sliding_window"] = nullptr;
  name_outer(model);
  name_norms(model);
  name_attention(model);
  model.name("blk.{layer}.ffn_up", "model.layers.{layer}.mlp.c_fc");
  model.name("blk.{layer}.ffn_down", "model.layers.{layer}.mlp.c_proj");
  drop_fields(model, {"head_dim"});
}

void read_codeshell(ModelReader& model) {
  if (!model.has_tensor("token_embd.weight")) model.embedding = "output";
  read_starcoder2(model);
}

}  // namespace tgi::gguf
