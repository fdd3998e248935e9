// StableLM 2.
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

void read_stablelm(ModelReader& model) {
  read_decoder(model, "StableLmForCausalLM", "stablelm");
  read_layer_norm(model, "layer_norm_eps");
  read_attention_bias(model);
  model.config["use_qkv_bias"] = model.config.at("attention_bias");
  model.config["use_parallel_residual"] = !model.has_tensor("blk.0.ffn_norm.weight");
  model.pass_over("use_parallel_residual");  // the tensors say it
  state_rotary_part(model);
  name_decoder(model);
  drop_fields(model, {"attention_bias", "head_dim"});
}

// StableLM's block, with whole heads rotated.
void read_orion(ModelReader& model) {
  read_stablelm(model);
}

}  // namespace tgi::gguf
