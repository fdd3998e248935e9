// Gemma 4 (text): Gemma's block with norms before and after each branch, of heads of q, k and v.
// Layers that see everything have heads of another size than those with a window, and may read
// their values off the keys' matrix; the last layers of each kind read the keys and values of the
// last one before them. Small ones have rows for each layer, large ones experts beside the MLP; the
// unified one, which sees and hears without encoders, has neither.
// Source: models/gemma4 and models/gemma4_unified in `transformers`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/families/gemma_shared.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kGemma4Decoder = {
    .activation = "hidden_activation",
    .default_vocab_size = 262144,
    .default_hidden_size = 2304,
    .default_num_layers = 30,
    .default_num_heads = 8,
    .default_num_kv_heads = 4,
    .default_head_dim = 256,
    .default_intermediate = 9216,
    .default_max_positions = 131072,
    .default_activation = "gelu_pytorch_tanh",
    .default_tied = true,
    .default_bos = 2,
    .default_eos = 1,
};

// What differs by layer, as the config class writes it: {"5": {"head_dim": 512}}.
void read_layer_overrides(const JsonReader& config, ModelConfig& model) {
  const JsonReader all = config.object("per_layer_config");
  for (const auto& [key, value] : all.json().items()) {
    const bool is_number = !key.empty() && key.size() < 6 &&
                           std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number || std::stoi(key) >= model.num_layers) {
      throw Error(Code::kInvalidArgument, fmt::format("{}: expected the number of a layer below {}",
                                                      all.path_of(key), model.num_layers));
    }
    const JsonReader own = all.object(key);
    for (const auto& [field, said] : own.json().items()) {
      if (field == "head_dim" || field == "num_key_value_heads") continue;
      throw Error(Code::kUnsupported,
                  fmt::format("{}: layer {} says {} = {}, which is not supported; known are "
                              "head_dim and num_key_value_heads",
                              config.path_of("per_layer_config"), key, field, said.dump()));
    }
    LayerPlan& layer = model.layers[static_cast<size_t>(std::stoi(key))];
    if (own.has("head_dim")) layer.head_dim = read_size(own, "head_dim", 0, kMaxHeadDim);
    if (own.has("num_key_value_heads"))
      layer.num_kv_heads = read_size(own, "num_key_value_heads", 0, kMaxHeads);
  }
}

void read_gemma4_heads(const JsonReader& config, ModelConfig& model) {
  if (config.json().contains("per_layer_config")) {
    if (config.has("per_layer_config")) read_layer_overrides(config, model);
  } else {
    const int32_t head_dim = read_size(config, "global_head_dim", 512, kMaxHeadDim);
    const bool has_own_count =
        config.boolean_or("attention_k_eq_v", false) && config.has("num_global_key_value_heads");
    for (LayerPlan& layer : model.layers) {
      if (layer.sliding_window > 0) continue;
      layer.head_dim = head_dim;
      if (has_own_count)
        layer.num_kv_heads = read_size(config, "num_global_key_value_heads", 0, kMaxHeads);
    }
  }
  for (int32_t i = 0; i < model.num_layers; ++i) {
    const KvHeads heads = kv_heads_of(model, i);
    if (model.num_heads % heads.num_kv_heads != 0 ||
        int64_t{model.num_heads} * heads.head_dim > kMaxQuerySize) {
      throw Error(
          Code::kInvalidArgument,
          fmt::format("layer {}: {} heads of {} with {} KV heads; expected a multiple of "
                      "the KV heads, and no more than {} numbers of q",
                      i, model.num_heads, heads.head_dim, heads.num_kv_heads, kMaxQuerySize));
    }
    // Where all are alike nothing is said of each.
    LayerPlan& layer = model.layers[static_cast<size_t>(i)];
    if (layer.head_dim == model.head_dim) layer.head_dim = 0;
    if (layer.num_kv_heads == model.num_kv_heads) layer.num_kv_heads = 0;
  }
}

// Of the layers with a window, or of those without: a rope is for all of them.
int32_t head_dim_of_kind(const ModelConfig& model, bool windowed) {
  int32_t found = 0;
  for (int32_t i = 0; i < model.num_layers; ++i) {
    if ((model.layers[static_cast<size_t>(i)].sliding_window > 0) != windowed) continue;
    const int32_t head_dim = kv_heads_of(model, i).head_dim;
    if (found != 0 && found != head_dim) {
      throw Error(Code::kUnsupported,
                  fmt::format("per_layer_config: layers of one kind have heads of {} and of {}, "
                              "which is not supported; expected one size for each kind",
                              found, head_dim));
    }
    found = head_dim;
  }
  return found == 0 ? model.head_dim : found;
}

void read_gemma4_ropes(const JsonReader& config, ModelConfig& model) {
  Json json = config.json();
  if (!config.has("rope_parameters")) {
    json["rope_parameters"] = Json::parse(
        R"({"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                               "rope_theta": 1000000.0}})");
  }
  read_rope_by_window(config.in_place(json), model,
                      {.head_dim = head_dim_of_kind(model, true),
                       .layer_type = "sliding_attention",
                       .widens_context = false},
                      {.default_theta = 1e6,
                       .head_dim = head_dim_of_kind(model, false),
                       .layer_type = "full_attention",
                       .widens_context = false});
}

void read_gemma4_experts(const JsonReader& config, ModelConfig& model) {
  if (!config.boolean_or("enable_moe_block", false)) return;
  read_experts(config,
               {.top_k = "top_k_experts",
                .intermediate_size = "moe_intermediate_size",
                .default_num_experts = 0,
                .default_top_k = 0,
                .normalises = true},
               model);
  model.experts.has_scale = true;
  for (LayerPlan& layer : model.layers) layer.mlp = MlpKind::kBoth;
}

void read_layer_inputs(const JsonReader& config, ModelConfig& model) {
  const int64_t size = config.json().contains("hidden_size_per_layer_input")
                           ? config.integer_or("hidden_size_per_layer_input", 0)
                           : 256;
  if (size == 0) return;
  model.layer_inputs.size =
      check_size(config, "hidden_size_per_layer_input", size, kMaxIntermediateSize);
  model.layer_inputs.vocab_size =
      read_size(config, "vocab_size_per_layer_input", 262144, kMaxVocabSize);
  if (model.layer_inputs.vocab_size < model.vocab_size) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: {} is less than the {} tokens of vocab_size, so that some tokens "
                            "have no row; expected as many or more",
                            config.path_of("vocab_size_per_layer_input"),
                            model.layer_inputs.vocab_size, model.vocab_size));
  }
}

ModelConfig read_gemma4_common(const JsonReader& config,
                               const DecoderFields& fields,
                               int64_t default_window) {
  ModelConfig model = read_decoder_config(config, fields);
  model.embedding_multiplier = std::sqrt(static_cast<float>(model.hidden_size));
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.attention_scale = 1.0F;
  model.logit_softcap =
      read_optional_positive(config, "final_logit_softcapping", {}).value_or(0.0F);
  read_windows(config,
               {.default_window = default_window, .default_pattern = 6, .null_is_no_window = false},
               model);
  // Whatever layer_types says of it.
  model.layers.back().sliding_window = 0;
  read_gemma4_heads(config, model);
  read_gemma4_ropes(config, model);
  read_shared_kv(config, 0, model);
  for (LayerPlan& layer : model.layers) {
    if (layer.kv_layer != kOwnKv && config.boolean_or("use_double_wide_mlp", false))
      layer.intermediate_size = 2 * model.intermediate_size;
    layer.keys_are_values =
        layer.sliding_window == 0 && config.boolean_or("attention_k_eq_v", false);
  }
  return model;
}

ModelConfig read_gemma4(const JsonReader& config) {
  ModelConfig model = read_gemma4_common(config, kGemma4Decoder, 512);
  read_gemma4_experts(config, model);
  read_layer_inputs(config, model);
  return model;
}

ModelConfig read_gemma4_unified(const JsonReader& config) {
  DecoderFields fields = kGemma4Decoder;
  fields.default_max_positions = 262144;
  return read_gemma4_common(config, fields, 1024);
}

constexpr auto kGemma4CommonFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("intermediate_size"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read_or_null("num_key_value_heads"),
    read("head_dim"),
    read("hidden_activation"),
    read("max_position_embeddings"),
    read("rms_norm_eps"),
    read_or_null("tie_word_embeddings"),
    read_or_null("rope_parameters"),
    read("attention_bias"),
    read("sliding_window"),
    read_or_null("layer_types"),
    read_or_null("final_logit_softcapping"),
    harmless_if("use_bidirectional_attention", "[\"vision\"]", "tokens of text see those before"),
    read("attention_k_eq_v"),
    read("num_kv_shared_layers"),
    read("use_double_wide_mlp"),
    read_or_null("global_head_dim"),
    read_or_null("num_global_key_value_heads"),
    read_or_null("per_layer_config"),
});

constexpr auto kGemma4Fields = join_fields(kGemma4CommonFields,
                                           std::to_array<KnownField>({
                                               read_or_null("vocab_size_per_layer_input"),
                                               read_or_null("hidden_size_per_layer_input"),
                                               read("enable_moe_block"),
                                               read_or_null("num_experts"),
                                               read_or_null("top_k_experts"),
                                               read_or_null("moe_intermediate_size"),
                                           }));

constexpr std::string_view kNoLayerInputs = "layers have no rows of their own";
constexpr std::string_view kNoExperts = "there are no experts";

constexpr auto kGemma4UnifiedFields =
    join_fields(kGemma4CommonFields,
                std::to_array<KnownField>({
                    harmless("vocab_size_per_layer_input", kNoLayerInputs),
                    harmless_if("hidden_size_per_layer_input", "[0]", kNoLayerInputs),
                    harmless_if("enable_moe_block", "[false]", kNoExperts),
                    harmless_if("num_experts", "[]", kNoExperts),
                    harmless_if("top_k_experts", "[]", kNoExperts),
                    harmless_if("moe_intermediate_size", "[]", kNoExperts),
                }));

constexpr bool has_experts_beside(const ModelConfig& config, int32_t layer) {
  return config.layers[static_cast<size_t>(layer)].mlp == MlpKind::kBoth;
}
constexpr auto kGemma4ExpertTensors = std::to_array<TensorSpec>({
    {Role::kRouter, "model.layers.{layer}.router.proj.weight", Dim::kExperts, Dim::kHidden,
     Split::kNone, has_experts_beside},
    {Role::kRouterNorm, "model.layers.{layer}.router.scale", Dim::kOne, Dim::kHidden, Split::kNone,
     has_experts_beside},
    {Role::kExpertScale, "model.layers.{layer}.router.per_expert_scale", Dim::kOne, Dim::kExperts,
     Split::kNone, has_experts_beside},
    {.role = Role::kExpertGateUp,
     .name = "model.layers.{layer}.experts.gate_up_proj",
     .rows = Dim::kExpertGateUp,
     .cols = Dim::kHidden,
     .split = Split::kRows,
     .only_if = has_experts_beside,
     .stacked = true},
    {.role = Role::kExpertDown,
     .name = "model.layers.{layer}.experts.down_proj",
     .rows = Dim::kHidden,
     .cols = Dim::kExpertIntermediate,
     .split = Split::kColumns,
     .only_if = has_experts_beside,
     .stacked = true},
    {Role::kDensePostNorm, "model.layers.{layer}.post_feedforward_layernorm_1.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, has_experts_beside},
    {Role::kExpertsNorm, "model.layers.{layer}.pre_feedforward_layernorm_2.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, has_experts_beside},
    {Role::kExpertsPostNorm, "model.layers.{layer}.post_feedforward_layernorm_2.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, has_experts_beside},
});

constexpr auto kGemma4Tensors = join_tensors(
    kLlamaOuterTensors,
    kFourNormTensors,
    kSharedKvAttentionTensors,
    kLlamaOTensors,
    kLlamaOBiasTensors,
    kLlamaMlpTensors,
    kGemma4ExpertTensors,
    kLayerInputTensors,
    std::to_array<TensorSpec>({
        {Role::kStreamScale, "model.layers.{layer}.layer_scalar", Dim::kOne, Dim::kOne},
    }));

constexpr auto kGemma4Names = std::to_array<std::string_view>({"Gemma4ForCausalLM"});
constexpr auto kGemma4Types = std::to_array<std::string_view>({"gemma4_text"});
constexpr auto kGemma4MultimodalNames =
    std::to_array<std::string_view>({"Gemma4ForConditionalGeneration"});
constexpr auto kGemma4MultimodalTypes = std::to_array<std::string_view>({"gemma4"});

constexpr auto kGemma4UnifiedNames = std::to_array<std::string_view>({"Gemma4UnifiedForCausalLM"});
constexpr auto kGemma4UnifiedTypes = std::to_array<std::string_view>({"gemma4_unified_text"});
constexpr auto kGemma4UnifiedMultimodalNames =
    std::to_array<std::string_view>({"Gemma4UnifiedForConditionalGeneration"});
constexpr auto kGemma4UnifiedMultimodalTypes = std::to_array<std::string_view>({"gemma4_unified"});

}  // namespace

extern const Architecture kGemma4;
constexpr Architecture kGemma4 = {
    .names = kGemma4Names,
    .model_types = kGemma4Types,
    .prefix = "model.",
    .read_config = read_gemma4,
    .fields = kGemma4Fields,
    .tensors = kGemma4Tensors,
    .ignored = kUnreadKv,
};

extern const Architecture kGemma4Multimodal;
constexpr Architecture kGemma4Multimodal = multimodal_of(kGemma4MultimodalNames,
                                                         kGemma4MultimodalTypes,
                                                         R"({"model_type": "gemma4_text"})",
                                                         kSoundAndImageFields,
                                                         kSoundAndImageIgnored);

extern const Architecture kGemma4Unified;
constexpr Architecture kGemma4Unified = {
    .names = kGemma4UnifiedNames,
    .model_types = kGemma4UnifiedTypes,
    .prefix = "model.",
    .read_config = read_gemma4_unified,
    .fields = kGemma4UnifiedFields,
    .tensors = kGemma4Tensors,
    .ignored = kUnreadKv,
};

extern const Architecture kGemma4UnifiedMultimodal;
constexpr Architecture kGemma4UnifiedMultimodal =
    multimodal_of(kGemma4UnifiedMultimodalNames,
                  kGemma4UnifiedMultimodalTypes,
                  R"({"model_type": "gemma4_unified_text"})",
                  kSoundAndImageFields,
                  kSoundAndImageIgnored);

}  // namespace tgi
