// Gemma 3n and 4: rows for each layer beside the embedding, and layers that read the keys and
// values of others. Weights of norms are stored as they are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

[[noreturn]] void refuse(const ModelReader& model, std::string_view what, const std::string& why) {
  throw Error(Code::kUnsupported, fmt::format("{}: {}: {}", model.architecture(), what, why));
}

void read_softcap(ModelReader& model) {
  const auto cap = model.find_number("final_logit_softcapping");
  model.config["final_logit_softcapping"] = cap ? Json(*cap) : Json(nullptr);
}

void read_shared_kv(ModelReader& model) {
  model.config["num_kv_shared_layers"] =
      model.find_integer("attention.shared_kv_layers").value_or(0);
}

void read_layer_inputs(ModelReader& model) {
  const auto size = model.find_integer("embedding_length_per_layer_input").value_or(0);
  model.config["hidden_size_per_layer_input"] = size;
  if (size == 0) return;
  const GgufTensor* const table = model.find_tensor("per_layer_token_embd.weight");
  model.config["vocab_size_per_layer_input"] =
      table != nullptr ? table->shape.front() : model.config.at("vocab_size").get<int64_t>();
}

void name_gemma_block(ModelReader& model) {
  const std::string layer = "model.layers.{layer}.";
  read_attention_bias(model);
  name_outer(model);
  name_projections(model, layer + "self_attn");
  name_qk_norms(model);
  name_four_norms(model);
  name_mlp(model);
  model.name("per_layer_token_embd", "model.embed_tokens_per_layer");
  model.name("per_layer_model_proj", "model.per_layer_model_projection");
  model.name("per_layer_proj_norm", "model.per_layer_projection_norm");
  model.name("blk.{layer}.inp_gate", layer + "per_layer_input_gate");
  model.name("blk.{layer}.proj", layer + "per_layer_projection");
  model.name("blk.{layer}.post_norm", layer + "post_per_layer_input_norm");
}

// --- Gemma 3n

// Files have how many standard deviations above the mean a gate's numbers are kept, the class which
// share of them is not.
void read_sparsity(ModelReader& model) {
  Json shares = Json::array();
  for (const double deviations : model.numbers("activation_sparsity_scale")) {
    shares.push_back(0.5 * std::erfc(-deviations / std::numbers::sqrt2));
  }
  if (!shares.empty()) model.config["activation_sparsity_pattern"] = std::move(shares);
}

void name_streams(ModelReader& model) {
  model.name("altup_proj", "model.altup_projections.{expert}");
  model.name("altup_unembd_proj", "model.altup_unembed_projections.{expert}");
  const std::string layer = "model.layers.{layer}.";
  model.name("blk.{layer}.altup_router", layer + "altup.modality_router");
  model.name("blk.{layer}.altup_router_norm", layer + "altup.router_norm");
  model.name("blk.{layer}.altup_predict_coef", layer + "altup.prediction_coefs");
  model.name("blk.{layer}.altup_correct_coef", layer + "altup.correction_coefs");
  name_bare(model, "blk.{layer}.altup_correct_scale", layer + "altup.correct_output_scale");
  model.name("blk.{layer}.laurel_l", layer + "laurel.linear_left");
  model.name("blk.{layer}.laurel_r", layer + "laurel.linear_right");
  model.name("blk.{layer}.laurel_post_norm", layer + "laurel.post_laurel_norm");
}

// --- Gemma 4

// The layers that read others' keys and values may be twice as wide as the others.
void read_gemma4_widths(ModelReader& model) {
  const std::vector<int64_t> widths = model.integers_of_layers("feed_forward_length");
  if (widths.empty()) refuse(model, "feed_forward_length", "not in the file's metadata");
  const auto shared = model.config.at("num_kv_shared_layers").get<int64_t>();
  const int64_t first_shared = model.num_layers() - shared;
  const bool is_double = shared > 0 && widths.back() != widths.front();
  for (int64_t layer = 0; layer < model.num_layers(); ++layer) {
    const int64_t expected = widths.front() * (is_double && layer >= first_shared ? 2 : 1);
    const int64_t width = widths[static_cast<size_t>(layer)];
    if (width == expected) continue;
    refuse(model, "feed_forward_length",
           fmt::format("layer {} is {} wide, expected {}: as the first, or twice that where keys "
                       "and values are another layer's",
                       layer, width, expected));
  }
  model.config["intermediate_size"] = widths.front();
  model.config["use_double_wide_mlp"] = is_double;
}

int64_t read_head_dim(ModelReader& model, const std::string& suffix) {
  const int64_t length = model.positive("attention.key_length" + suffix);
  const int64_t values = model.find_integer("attention.value_length" + suffix).value_or(length);
  if (values == length) return length;
  refuse(model, "attention.value_length" + suffix,
         fmt::format("{}, expected that of keys, {}", values, length));
}

bool has_window(const ModelReader& model, int64_t layer) {
  return model.config.at("layer_types")[static_cast<size_t>(layer)] == "sliding_attention";
}

// Layers with a window have heads of one length, the others of another, and each as many for keys
// as the list says.
void read_gemma4_heads(ModelReader& model) {
  Json& config = model.config;
  const int64_t num_heads = model.positive("attention.head_count");
  const int64_t head_dim = read_head_dim(model, "_swa");
  const int64_t global_head_dim = read_head_dim(model, "");
  std::vector<int64_t> kv_heads = model.integers_of_layers("attention.head_count_kv");
  kv_heads.resize(static_cast<size_t>(model.num_layers()), num_heads);
  config["num_attention_heads"] = num_heads;
  config["num_key_value_heads"] = kv_heads.front();
  for (int64_t layer = model.num_layers() - 1; layer >= 0; --layer) {
    if (has_window(model, layer)) {
      config["num_key_value_heads"] = kv_heads[static_cast<size_t>(layer)];
    }
  }
  config["head_dim"] = head_dim;
  Json layers = Json::object();
  bool lacks_values = false;
  for (int64_t layer = 0; layer < model.num_layers(); ++layer) {
    const int64_t count = kv_heads[static_cast<size_t>(layer)];
    const bool is_global = !has_window(model, layer);
    layers[std::to_string(layer)] = {{"head_dim", is_global ? global_head_dim : head_dim},
                                     {"num_key_value_heads", count}};
    const auto has = [&](const char* tensor) {
      return model.has_tensor(fmt::format("blk.{}.{}.weight", layer, tensor));
    };
    lacks_values = lacks_values || (is_global && has("attn_k") && !has("attn_v"));
  }
  config["per_layer_config"] = std::move(layers);
  config["attention_k_eq_v"] = lacks_values;
}

// Of the frequencies of layers that see everything the later ones are divided by so much that they
// turn nothing: the part of a head that is rotated.
double read_rotated_part(ModelReader& model) {
  constexpr const char* kFactors = "rope_freqs.weight";
  if (!model.has_tensor(kFactors)) return 1.0;
  model.ignore_tensor("rope_freqs");
  constexpr float kNever = 1e30F;
  const std::vector<float> factors = model.values(kFactors);
  const auto rotated = std::ranges::find_if(factors, [](float factor) { return factor != 1.0F; });
  const auto other =
      std::find_if(rotated, factors.end(), [](float factor) { return !(factor >= kNever); });
  if (rotated == factors.begin() || other != factors.end()) {
    const auto at = rotated == factors.begin() ? rotated : other;
    refuse(model, kFactors,
           fmt::format("element {} is {}; expected a 1 for each frequency that turns, and 1e30 for "
                       "each one behind them",
                       at - factors.begin(), factors.empty() ? 0.0F : *at));
  }
  return static_cast<double>(rotated - factors.begin()) / static_cast<double>(factors.size());
}

void read_gemma4_ropes(ModelReader& model) {
  Json& config = model.config;
  const double base = model.find_number("rope.freq_base").value_or(10000.0);
  const int64_t head_dim = config.at("head_dim").get<int64_t>();
  Json windowed = {{"rope_type", "default"},
                   {"rope_theta", model.find_number("rope.freq_base_swa").value_or(base)}};
  const int64_t columns = model.find_integer("rope.dimension_count_swa").value_or(head_dim);
  if (columns != head_dim) {
    refuse(model, "rope.dimension_count_swa",
           fmt::format("{} of the {} columns of a head with a window; expected all", columns,
                       head_dim));
  }
  const int64_t global_head_dim = model.integer("attention.key_length");
  const int64_t global_columns =
      model.find_integer("rope.dimension_count").value_or(global_head_dim);
  if (global_columns != global_head_dim) {
    refuse(model, "rope.dimension_count",
           fmt::format("{} of the {} columns of a head that sees everything; expected all, and "
                       "those that do not turn in rope_freqs",
                       global_columns, global_head_dim));
  }
  config["rope_parameters"] = {{"sliding_attention", std::move(windowed)},
                               {"full_attention",
                                {{"rope_type", "proportional"},
                                 {"rope_theta", base},
                                 {"partial_rotary_factor", read_rotated_part(model)}}}};
}

void read_gemma4_experts(ModelReader& model) {
  Json& config = model.config;
  const bool has_experts = model.find_integer("expert_count").value_or(0) > 0;
  config["enable_moe_block"] = has_experts;
  if (!has_experts) return;
  read_experts(model, "num_experts", "moe_intermediate_size");
  config["top_k_experts"] = config.at("num_experts_per_tok");
  config.erase("num_experts_per_tok");
}

void name_gemma4_experts(ModelReader& model) {
  const std::string layer = "model.layers.{layer}.";
  model.name("blk.{layer}.ffn_gate_inp", layer + "router.proj");
  name_bare(model, "blk.{layer}.ffn_gate_inp.scale", layer + "router.scale", "");
  name_bare(model, "blk.{layer}.ffn_down_exps.scale", layer + "router.per_expert_scale", "");
  name_gate_up_stacks(model, layer + "experts");
  model.name("blk.{layer}.post_ffw_norm_1", layer + "post_feedforward_layernorm_1");
  model.name("blk.{layer}.pre_ffw_norm_2", layer + "pre_feedforward_layernorm_2");
  model.name("blk.{layer}.post_ffw_norm_2", layer + "post_feedforward_layernorm_2");
}

}  // namespace

void read_gemma3n(ModelReader& model) {
  read_outer_sizes(model, "Gemma3nForCausalLM", "gemma3n_text");
  read_heads(model);
  Json& config = model.config;
  read_rope(model, config.at("head_dim").get<int64_t>());
  config["intermediate_size"] = model.integers_of_layers("feed_forward_length");
  config["rope_local_base_freq"] = model.find_number("rope.freq_base_swa").value_or(10000.0);
  config["sliding_window"] = model.integer("attention.sliding_window");
  config["layer_types"] = read_layer_types(model, 5);
  config["altup_num_inputs"] = model.integer("altup.num_inputs");
  config["altup_active_idx"] = model.integer("altup.active_idx");
  config["laurel_rank"] = model.tensor("blk.0.laurel_l.weight").shape.front();
  read_softcap(model);
  read_shared_kv(model);
  read_layer_inputs(model);
  read_sparsity(model);
  name_gemma_block(model);
  name_streams(model);
}

void read_gemma4(ModelReader& model) {
  read_outer_sizes(model, "Gemma4ForCausalLM", "gemma4_text");
  Json& config = model.config;
  config["sliding_window"] = model.integer("attention.sliding_window");
  config["layer_types"] = read_layer_types(model, 6);
  read_softcap(model);
  read_shared_kv(model);
  read_layer_inputs(model);
  read_gemma4_widths(model);
  read_gemma4_heads(model);
  read_gemma4_ropes(model);
  read_gemma4_experts(model);
  name_gemma_block(model);
  name_bare(model, "blk.{layer}.layer_output_scale", "model.layers.{layer}.layer_scalar");
  name_gemma4_experts(model);
}

}  // namespace tgi::gguf
