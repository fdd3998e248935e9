// Falcon: q, k and v lie one below the other, elsewhere by KV head.
#include <string>

#include "engine/gguf/architectures.h"

namespace tgi::gguf {

void read_falcon(ModelReader& model) {
  read_decoder(model, "FalconForCausalLM", "falcon");
  read_width_of_tensor(model);
  Json& config = model.config;
  const auto heads = config.at("num_attention_heads").get<int64_t>();
  const auto kv_heads = config.at("num_key_value_heads").get<int64_t>();
  const RowOrder by_head = qkv_by_kv_head(heads, kv_heads, config.at("head_dim").get<int64_t>());
  const bool has_two_norms = model.has_tensor("blk.0.attn_norm_2.weight");
  config["num_kv_heads"] = kv_heads;
  config["ffn_hidden_size"] = config.at("intermediate_size");
  config["new_decoder_architecture"] = true;
  config["num_ln_in_parallel_attn"] = has_two_norms ? 2 : 1;
  config["parallel_attn"] = true;
  config["multi_query"] = false;
  config["alibi"] = false;
  config["bias"] = model.has_tensor("blk.0.attn_qkv.bias");
  drop_fields(model, {"head_dim", "num_key_value_heads", "intermediate_size"});
  read_layer_norm(model, "layer_norm_epsilon");
  model.pass_over("tensor_data_layout");
  model.name("token_embd", "transformer.word_embeddings");
  model.name("output", "lm_head");
  model.name("output_norm", "transformer.ln_f");
  const std::string layer = "transformer.h.{layer}.";
  // The second norm is that of attention.
  model.name("blk.{layer}.attn_norm", layer + (has_two_norms ? "ln_mlp" : "input_layernorm"));
  model.name("blk.{layer}.attn_norm_2", layer + "ln_attn");
  model.name("blk.{layer}.attn_qkv", layer + "self_attention.query_key_value", by_head);
  model.name("blk.{layer}.attn_output", layer + "self_attention.dense");
  model.name("blk.{layer}.ffn_up", layer + "mlp.dense_h_to_4h");
  model.name("blk.{layer}.ffn_down", layer + "mlp.dense_4h_to_h");
}

}  // namespace tgi::gguf
