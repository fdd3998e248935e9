// Gemma 1 to 3. Weights of norms are stored with the 1 that the model adds to them.
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

// Scores are divided by the root of head_dim, but in the largest model of a generation, which is
// known by its layers, by that of the heads' share of the hidden size.
void read_score_scale(ModelReader& model, int64_t layers_of_largest) {
  Json& config = model.config;
  const auto hidden = config.at("hidden_size").get<int64_t>();
  const auto heads = config.at("num_attention_heads").get<int64_t>();
  const bool is_largest = model.num_layers() == layers_of_largest;
  config["query_pre_attn_scalar"] =
      is_largest ? hidden / heads : config.at("head_dim").get<int64_t>();
}

void name_gemma(ModelReader& model) {
  read_attention_bias(model);
  name_outer(model, Change::kPlusOne);
  name_attention(model);
  name_mlp(model);
}

}  // namespace

void read_gemma(ModelReader& model) {
  read_decoder(model, "GemmaForCausalLM", "gemma");
  name_gemma(model);
  name_norms(model, Change::kPlusOne);
}

void read_gemma2(ModelReader& model) {
  read_decoder(model, "Gemma2ForCausalLM", "gemma2");
  Json& config = model.config;
  config["attn_logit_softcapping"] = model.find_number("attn_logit_softcapping").value_or(50.0);
  config["final_logit_softcapping"] = model.find_number("final_logit_softcapping").value_or(30.0);
  config["sliding_window"] = model.find_integer("attention.sliding_window").value_or(4096);
  read_score_scale(model, 46);
  name_gemma(model);
  name_four_norms(model, Change::kPlusOne);
}

void read_gemma3(ModelReader& model) {
  read_decoder(model, "Gemma3ForCausalLM", "gemma3_text");
  Json& config = model.config;
  if (const auto cap = model.find_number("final_logit_softcapping"))
    config["final_logit_softcapping"] = *cap;
  config["rope_local_base_freq"] = model.find_number("rope.freq_base_swa").value_or(10000.0);
  const auto window = model.find_integer("attention.sliding_window");
  if (window) config["sliding_window"] = *window;
  config["layer_types"] = read_layer_types(model, window ? 6 : 1);
  read_score_scale(model, 62);
  name_gemma(model);
  name_qk_norms(model, Change::kPlusOne);
  name_four_norms(model, Change::kPlusOne);
}

// Gemma 3 whose tokens see both sides.
void read_gemma_embedding(ModelReader& model) {
  read_gemma3(model);
  model.config["architectures"] = Json::array({"Gemma3TextModel"});
  model.config["use_bidirectional_attention"] = true;
  model.config["query_pre_attn_scalar"] = model.config.at("head_dim");
  model.config["tie_word_embeddings"] = true;
}

}  // namespace tgi::gguf
