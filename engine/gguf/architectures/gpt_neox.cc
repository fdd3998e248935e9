// GPT-NeoX and Pythia: q, k and v lie one below the other, elsewhere by head.
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

void read_gptneox(ModelReader& model) {
  read_decoder(model, "GPTNeoXForCausalLM", "gpt_neox");
  Json& config = model.config;
  const auto heads = config.at("num_attention_heads").get<int64_t>();
  const RowOrder by_head = qkv_by_kv_head(heads, heads, config.at("head_dim").get<int64_t>());
  config["rotary_emb_base"] = config.at("rope_theta");
  config["rotary_pct"] = config.value("partial_rotary_factor", 1.0);
  drop_fields(model, {"head_dim", "num_key_value_heads", "rope_theta", "partial_rotary_factor"});
  read_layer_norm(model, "layer_norm_eps");
  config["use_parallel_residual"] = model.find_boolean("use_parallel_residual").value_or(true);
  config["attention_bias"] = model.has_tensor("blk.0.attn_qkv.bias");
  model.name("token_embd", "gpt_neox.embed_in");
  model.name("output", "embed_out");
  model.name("output_norm", "gpt_neox.final_layer_norm");
  model.name("blk.{layer}.attn_norm", "gpt_neox.layers.{layer}.input_layernorm");
  model.name("blk.{layer}.ffn_norm", "gpt_neox.layers.{layer}.post_attention_layernorm");
  model.name("blk.{layer}.attn_qkv", "gpt_neox.layers.{layer}.attention.query_key_value", by_head);
  model.name("blk.{layer}.attn_output", "gpt_neox.layers.{layer}.attention.dense");
  model.name("blk.{layer}.ffn_up", "gpt_neox.layers.{layer}.mlp.dense_h_to_4h");
  model.name("blk.{layer}.ffn_down", "gpt_neox.layers.{layer}.mlp.dense_4h_to_h");
}

}  // namespace tgi::gguf
