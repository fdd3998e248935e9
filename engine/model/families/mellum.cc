// Mellum 2: Qwen 3's attention with experts, windows in the layers that the config names, and
// another rotation where there is one. The layer that predicts a second token may draft.
// Source: models/mellum in `transformers`.
#include <array>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr WindowFields kMellumWindows = {.default_window = 1024};

void read_mellum_ropes(const JsonReader& config, ModelConfig& model) {
  read_rope_by_window(
      config, model, {.layer_type = "sliding_attention", .widens_context = false},
      {.default_theta = 500000.0, .layer_type = "full_attention", .widens_context = false});
}

ModelConfig read_mellum(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 98304,
                                                   .default_hidden_size = 2304,
                                                   .default_num_layers = 28,
                                                   .default_num_kv_heads = 4,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 7168,
                                                   .default_max_positions = 131072,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", false);
  // Without the list no layer has a window.
  if (config.has("layer_types")) read_windows(config, kMellumWindows, model);
  read_mellum_ropes(config, model);
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .normalises_name = "norm_topk_prob",
                .default_num_experts = 64,
                .default_top_k = 8,
                .default_intermediate = 896,
                .normalises = true},
               model);
  if (!read_mlp_layer_types(config, model)) use_experts_in_all_layers(model);
  return model;
}

// Its lists are of that layer alone; without them it has a window and experts.
void shape_mellum_next_tokens(const JsonReader& config, ModelConfig& model) {
  Json own = config.json();
  const auto take = [&](const char* from, const char* to, const char* otherwise) {
    own[to] = config.has(from) ? own[from] : Json::array({otherwise});
  };
  take("mtp_layer_types", "layer_types", "sliding_attention");
  take("mtp_mlp_layer_types", "mlp_layer_types", "sparse");
  const JsonReader layer(own, "");
  model.layers.front() = {};
  model.ropes.clear();
  try {
    read_windows(layer, kMellumWindows, model);
    read_mellum_ropes(layer, model);
    read_mlp_layer_types(layer, model);
  } catch (const Error& error) {
    throw error.in("of the layer for the next tokens (mtp_layer_types, mtp_mlp_layer_types)");
  }
}

constexpr auto kMellumFields = join_fields(kDecoderFields,
                                           kExpertFields,
                                           std::to_array<KnownField>({
                                               read_or_null("attention_bias"),
                                               read_or_null("sliding_window"),
                                               read_or_null("layer_types"),
                                               read_or_null("mlp_layer_types"),
                                               read("moe_intermediate_size"),
                                               harmless("num_nextn_predict_layers", kOnlyDrafts),
                                               harmless("mtp_layer_types", kOnlyDrafts),
                                               harmless("mtp_mlp_layer_types", kOnlyDrafts),
                                           }));

constexpr auto kMellumAliases = std::to_array<FieldAlias>({
    {"num_local_experts", "num_experts"},
    {"num_mtp_layers", "num_nextn_predict_layers"},
});

constexpr auto kMellumNames = std::to_array<std::string_view>({"MellumForCausalLM"});
constexpr auto kMellumTypes = std::to_array<std::string_view>({"mellum"});

constexpr auto kMellumTensors = join_tensors(kLlamaOuterTensors,
                                             kLlamaNormTensors,
                                             kLlamaAttentionTensors,
                                             kLlamaQkvBiasTensors,
                                             kLlamaOBiasTensors,
                                             kQkNormTensors,
                                             kLlamaMlpTensors,
                                             kExpertTensors);

constexpr auto kMellumIgnored = std::to_array<std::string_view>({".rotary_emb.inv_freq", "mtp.*"});

constexpr NextTokenNames kMellumNextTokens = {
    .count_field = "num_nextn_predict_layers",
    .embedding_norm = "pre_fc_norm_embedding.weight",
    .hidden_norm = "pre_fc_norm_hidden.weight",
    .projection = "fc.weight",
    .final_norm = "norm.weight",
    .hands_on_normed = true,
    .apart = "mtp.",
    .shape = shape_mellum_next_tokens,
};

}  // namespace

extern const Architecture kMellum;
constexpr Architecture kMellum = {
    .names = kMellumNames,
    .model_types = kMellumTypes,
    .prefix = "model.",
    .read_config = read_mellum,
    .fields = kMellumFields,
    .aliases = kMellumAliases,
    .tensors = kMellumTensors,
    .ignored = kMellumIgnored,
    .next_tokens = &kMellumNextTokens,
};

}  // namespace tgi
