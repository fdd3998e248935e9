// Decoders with Llama's names that differ from it in little.
#include <string>

#include "engine/gguf/architectures.h"

namespace tgi::gguf {

void read_arcee(ModelReader& model) {
  read_decoder(model, "ArceeForCausalLM", "arcee");
  read_biases(model);
  name_outer(model);
  name_norms(model);
  name_rotated_attention(model);
  name_mlp(model);
}

void read_ernie4_5(ModelReader& model) {
  read_decoder(model, "Ernie4_5ForCausalLM", "ernie4_5");
  model.config["use_bias"] = model.has_tensor("blk.0.attn_output.bias");
  name_decoder(model);
}

// A model that reads pages; of its block halves are rotated.
void read_paddleocr(ModelReader& model) {
  read_decoder(model, "PaddleOCRTextModel", "paddleocr_vl_text");
  model.pass_over("rope.dimension_sections");
  model.config["use_bias"] = model.has_tensor("blk.0.attn_output.bias");
  name_decoder(model);
}

void read_exaone4(ModelReader& model) {
  read_decoder(model, "Exaone4ForCausalLM", "exaone4");
  if (!read_windows(model, 4)) model.config["sliding_window"] = nullptr;
  name_outer(model);
  name_attention(model);
  name_qk_norms(model);
  name_post_norms(model);
  name_mlp(model);
}

void read_hunyuan_dense(ModelReader& model) {
  read_decoder(model, "HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense");
  read_attention_bias(model);
  name_outer(model);
  name_norms(model);
  name_attention(model);
  model.name("blk.{layer}.attn_q_norm", "model.layers.{layer}.self_attn.query_layernorm");
  model.name("blk.{layer}.attn_k_norm", "model.layers.{layer}.self_attn.key_layernorm");
  name_mlp(model);
}

// Its models of images: positions of text are alike in every section. The base is not stretched yet
// here.
void read_hunyuan_vl(ModelReader& model) {
  model.pass_over("rope.dimension_sections");
  read_hunyuan_dense(model);
  const auto alpha = model.find_number("rope.scaling.alpha");
  if (alpha) model.config["rope_scaling"] = {{"rope_type", "dynamic"}, {"alpha", *alpha}};
}

// Hunyuan's block, whose norms of the heads of q and k come after the rotation. Neighbours are
// rotated: rows of q and k, and with them the weights of their norms, are put into halves.
void read_maincoder(ModelReader& model) {
  read_decoder(model, "HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense");
  read_attention_bias(model);
  name_outer(model);
  name_norms(model);
  name_rotated_attention(model);
  const auto head_dim = model.config.at("head_dim").get<int64_t>();
  const RowOrder order = rotated_heads("norm", 1, head_dim);
  const std::string attention = "model.layers.{layer}.self_attn.";
  model.name("blk.{layer}.attn_q_norm", attention + "query_layernorm", order);
  model.name("blk.{layer}.attn_k_norm", attention + "key_layernorm", order);
  name_mlp(model);
}

void read_jais2(ModelReader& model) {
  read_decoder(model, "Jais2ForCausalLM", "jais2");
  read_layer_norm(model, "layer_norm_eps");
  drop_fields(model, {"rms_norm_eps"});
  read_biases(model);
  name_decoder(model);
}

// Norms have the 1 in their weights that the class adds.
void read_nemotron(ModelReader& model) {
  read_decoder(model, "NemotronForCausalLM", "nemotron");
  read_layer_norm(model, "norm_eps");
  state_rotary_part(model);
  drop_fields(model, {"rms_norm_eps"});
  read_biases(model);
  name_decoder(model, Change::kPlusOne);
}

void read_seed_oss(ModelReader& model) {
  read_decoder(model, "SeedOssForCausalLM", "seed_oss");
  read_attention_bias(model);
  model.config["attention_out_bias"] = model.has_tensor("blk.0.attn_output.bias");
  model.config["mlp_bias"] = model.has_tensor("blk.0.ffn_up.bias");
  name_outer(model);
  model.name("blk.{layer}.attn_norm", "model.layers.{layer}.input_layernorm");
  model.name("blk.{layer}.post_attention_norm", "model.layers.{layer}.post_attention_layernorm");
  name_attention(model);
  name_mlp(model);
}

// Every fourth layer has no positions.
void read_smollm3(ModelReader& model) {
  read_decoder(model, "SmolLM3ForCausalLM", "smollm3");
  model.config["no_rope_layer_interval"] = 4;
  read_biases(model);
  name_outer(model);
  name_norms(model);
  name_rotated_attention(model);
  name_mlp(model);
}

}  // namespace tgi::gguf
