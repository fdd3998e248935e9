// ERNIE 4.5 with experts.
#include <string>

#include "engine/gguf/architectures.h"

namespace tgi::gguf {

void read_ernie4_5_moe(ModelReader& model) {
  read_decoder(model, "Ernie4_5_MoeForCausalLM", "ernie4_5_moe");
  Json& config = model.config;
  read_experts(model, "moe_num_experts", "moe_intermediate_size");
  config["moe_k"] = config.at("num_experts_per_tok");
  drop_fields(model, {"num_experts_per_tok"});
  config["moe_num_shared_experts"] = model.find_integer("expert_shared_count").value_or(0);
  model.pass_over("expert_shared_feed_forward_length");  // the tensors say it
  config["moe_layer_start_index"] = model.find_integer("leading_dense_block_count").value_or(0);
  config["moe_layer_end_index"] = model.num_layers() - 1;
  config["moe_layer_interval"] = model.find_integer("interleave_moe_layer_step").value_or(1);
  config["use_bias"] = model.has_tensor("blk.0.attn_output.bias");
  name_outer(model);
  name_norms(model);
  name_attention(model);
  drop_fields(model, {"head_dim"});
  name_mlp(model);
  const std::string mlp = "model.layers.{layer}.mlp.";
  model.name("blk.{layer}.ffn_gate_inp", mlp + "gate");
  name_choice_bias(model, mlp + "moe_statics.e_score_correction_bias",
                   {1, config.at("moe_num_experts").get<int64_t>()});
  name_experts(model, mlp + "experts");
  name_shared_experts(model, mlp + "shared_experts");
}

}  // namespace tgi::gguf
