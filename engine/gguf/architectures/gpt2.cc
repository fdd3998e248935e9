// GPT-2 and those of its time: q, k and v in one matrix, an MLP without a gate.
#include <string>

#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

const std::string kGpt2Block = "transformer.h.{layer}.";

// Sizes under GPT-2's names of them.
void read_gpt2_sizes(ModelReader& model, const char* class_name, const char* model_type) {
  read_sizes(model, class_name, model_type);
  Json& config = model.config;
  config["n_embd"] = config.at("hidden_size");
  config["n_layer"] = config.at("num_hidden_layers");
  config["n_head"] = model.positive("attention.head_count");
  config["n_positions"] = config.at("max_position_embeddings");
  config["n_inner"] = model.tensor("blk.0.ffn_up.weight").shape.front();
  read_layer_norm(model, "layer_norm_epsilon");
  drop_fields(model, {"hidden_size", "num_hidden_layers", "max_position_embeddings",
                      "intermediate_size", "rms_norm_eps"});
}

void name_gpt2(ModelReader& model) {
  model.name("token_embd", "transformer.wte");
  model.name("position_embd", "transformer.wpe");
  model.name("output_norm", "transformer.ln_f");
  model.name("output", "lm_head");
  model.name("blk.{layer}.attn_norm", kGpt2Block + "ln_1");
  model.name("blk.{layer}.ffn_norm", kGpt2Block + "ln_2");
  model.name("blk.{layer}.attn_qkv", kGpt2Block + "attn.c_attn");
  model.name("blk.{layer}.attn_output", kGpt2Block + "attn.c_proj");
  model.name("blk.{layer}.ffn_up", kGpt2Block + "mlp.c_fc");
  model.name("blk.{layer}.ffn_down", kGpt2Block + "mlp.c_proj");
}

}  // namespace

void read_gpt2(ModelReader& model) {
  read_gpt2_sizes(model, "GPT2LMHeadModel", "gpt2");
  model.pass_over("attention.head_count_kv");
  name_gpt2(model);
}

void read_starcoder(ModelReader& model) {
  read_gpt2_sizes(model, "GPTBigCodeForCausalLM", "gpt_bigcode");
  const auto hidden = model.config.at("n_embd").get<int64_t>();
  model.pass_over("attention.head_count_kv");  // the width says it, and the field not always
  model.config["multi_query"] = model.tensor("blk.0.attn_qkv.weight").shape.front() != 3 * hidden;
  name_gpt2(model);
}

void read_bloom(ModelReader& model) {
  read_sizes(model, "BloomForCausalLM", "bloom");
  read_layer_norm(model, "layer_norm_epsilon");
  Json& config = model.config;
  const int64_t num_heads = model.positive("attention.head_count");
  const int64_t head_dim = config.at("hidden_size").get<int64_t>() / num_heads;
  model.pass_over("attention.head_count_kv");
  config["n_layer"] = config.at("num_hidden_layers");
  config["n_head"] = num_heads;
  config["seq_length"] = config.at("max_position_embeddings");
  drop_fields(model, {"num_hidden_layers", "max_position_embeddings", "intermediate_size"});
  model.name("token_embd", "transformer.word_embeddings");
  model.name("token_embd_norm", "transformer.word_embeddings_layernorm");
  model.name("output_norm", "transformer.ln_f");
  model.name("output", "lm_head");
  model.name("blk.{layer}.attn_norm", kGpt2Block + "input_layernorm");
  model.name("blk.{layer}.ffn_norm", kGpt2Block + "post_attention_layernorm");
  model.name("blk.{layer}.attn_qkv", kGpt2Block + "self_attention.query_key_value",
             qkv_by_kv_head(num_heads, num_heads, head_dim));
  model.name("blk.{layer}.attn_output", kGpt2Block + "self_attention.dense");
  model.name("blk.{layer}.ffn_up", kGpt2Block + "mlp.dense_h_to_4h");
  model.name("blk.{layer}.ffn_down", kGpt2Block + "mlp.dense_4h_to_h");
}

}  // namespace tgi::gguf
