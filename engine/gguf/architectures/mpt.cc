// MPT and DBRX, of one maker: the fields of attention are an object.
#include <string>

#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

const std::string kMptBlock = "transformer.blocks.{layer}.";

// Leaves attn_config to be filled in.
void read_mosaic_sizes(ModelReader& model, const char* class_name, const char* model_type) {
  read_sizes(model, class_name, model_type);
  model.pass_over("attention.layer_norm_epsilon");  // the class has one
  Json& config = model.config;
  config["d_model"] = config.at("hidden_size");
  config["n_layers"] = config.at("num_hidden_layers");
  config["n_heads"] = model.positive("attention.head_count");
  config["max_seq_len"] = config.at("max_position_embeddings");
  config["attn_config"] = Json::object();
  if (const auto limit = model.find_number("attention.clamp_kqv"))
    config["attn_config"]["clip_qkv"] = *limit;
  drop_fields(model,
              {"hidden_size", "num_hidden_layers", "max_position_embeddings", "intermediate_size"});
  model.name("token_embd", "transformer.wte");
  model.name("output_norm", "transformer.norm_f");
  model.name("output", "lm_head");
}

}  // namespace

void read_mpt(ModelReader& model) {
  read_mosaic_sizes(model, "MPTForCausalLM", "mpt");
  const double slope = model.find_number("attention.max_alibi_bias").value_or(8.0);
  model.config["attn_config"]["alibi"] = slope > 0.0;
  model.config["attn_config"]["alibi_bias_max"] = slope;
  if (model.find_integer("attention.head_count_kv").value_or(1) !=
      model.positive("attention.head_count")) {
    model.config["attn_config"]["attn_type"] =
        model.has("attention.head_count_kv") ? "grouped_query_attention" : "multihead_attention";
  }
  model.name("blk.{layer}.attn_norm", kMptBlock + "norm_1");
  model.name("blk.{layer}.ffn_norm", kMptBlock + "norm_2");
  model.name("blk.{layer}.attn_qkv", kMptBlock + "attn.Wqkv");
  model.name("blk.{layer}.attn_output", kMptBlock + "attn.out_proj");
  model.name("blk.{layer}.ffn_up", kMptBlock + "ffn.up_proj");
  model.name("blk.{layer}.ffn_down", kMptBlock + "ffn.down_proj");
}

void read_dbrx(ModelReader& model) {
  read_mosaic_sizes(model, "DbrxForCausalLM", "dbrx");
  Json& config = model.config;
  config["attn_config"]["kv_n_heads"] = model.positive("attention.head_count_kv");
  config["attn_config"]["rope_theta"] = model.find_number("rope.freq_base").value_or(10000.0);
  model.pass_over("rope.dimension_count");
  config["ffn_config"] = {{"ffn_hidden_size", model.tensor("blk.0.ffn_up_exps.weight").shape.at(1)},
                          {"moe_num_experts", model.integer("expert_count")},
                          {"moe_top_k", model.integer("expert_used_count")}};
  model.name("blk.{layer}.attn_norm", kMptBlock + "norm_attn_norm.norm_1");
  model.name("blk.{layer}.attn_output_norm", kMptBlock + "norm_attn_norm.norm_2");
  model.name("blk.{layer}.attn_qkv", kMptBlock + "norm_attn_norm.attn.Wqkv");
  model.name("blk.{layer}.attn_output", kMptBlock + "norm_attn_norm.attn.out_proj");
  model.name("blk.{layer}.ffn_gate_inp", kMptBlock + "ffn.router.layer");
  name_expert_stacks(model, kMptBlock + "ffn.experts.mlp", "w1", "v1", "w2");
}

}  // namespace tgi::gguf
