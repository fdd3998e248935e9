// Llama, Mistral and all that took their block, and Mixtral: experts are in the file or not.
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

void read_llama(ModelReader& model) {
  const auto num_experts = model.find_integer("expert_count").value_or(0);
  const auto used = model.find_integer("expert_used_count");
  if (num_experts > 0) {
    read_decoder(model, "MixtralForCausalLM", "mixtral");
    model.config["num_local_experts"] = num_experts;
    if (used) model.config["num_experts_per_tok"] = *used;
    model.name("blk.{layer}.ffn_gate_inp", "model.layers.{layer}.block_sparse_moe.gate");
    model.name("blk.{layer}.ffn_gate_exps",
               "model.layers.{layer}.block_sparse_moe.experts.{expert}.w1");
    model.name("blk.{layer}.ffn_down_exps",
               "model.layers.{layer}.block_sparse_moe.experts.{expert}.w2");
    model.name("blk.{layer}.ffn_up_exps",
               "model.layers.{layer}.block_sparse_moe.experts.{expert}.w3");
  } else {
    read_decoder(model, "LlamaForCausalLM", "llama");
    read_biases(model);
    name_mlp(model);
  }
  name_outer(model);
  name_norms(model);
  name_rotated_attention(model);
}

// EXAONE 3 is Llama with heads as they are elsewhere.
void read_exaone(ModelReader& model) {
  read_decoder(model, "LlamaForCausalLM", "llama");
  name_decoder(model);
}

}  // namespace tgi::gguf
