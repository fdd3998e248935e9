// LFM3: short convolutions between gates, attention with a window in some layers and over all in
// others, each kind with a rotation of its own; norms before and after the branches, and a gate of
// what each head gives. With eyes it is the same text model. Source: models/lfm3 and lfm3_vl in
// `transformers`.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/families/lfm_shared.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"
#include "engine/model/state_fields.h"

namespace tgi {
namespace {

constexpr std::string_view kConv = "conv";
constexpr std::string_view kWindowed = "sliding_attention";
constexpr std::string_view kFull = "full_attention";

std::vector<std::string> read_lfm3_types(const JsonReader& config, const ModelConfig& model) {
  if (config.has("layer_types")) return read_layer_names(config, "layer_types", model);
  std::vector<std::string> types;
  for (int32_t i = 0; i < model.num_layers; ++i) {
    types.emplace_back(i % 4 == 2 ? kFull : i % 4 == 0 && i > 0 ? kWindowed : kConv);
  }
  return types;
}

void read_lfm3_layers(const JsonReader& config, ModelConfig& model) {
  const std::vector<std::string> types = read_lfm3_types(config, model);
  const bool has_none = config.json().contains("sliding_window") && !config.has("sliding_window");
  const int32_t window = has_none ? 0 : read_size(config, "sliding_window", 256, kMaxPositions);
  for (size_t i = 0; i < types.size(); ++i) {
    LayerPlan& layer = model.layers[i];
    layer.has_state = types[i] == kConv;
    layer.has_attention = !layer.has_state;
    if (types[i] == kConv || types[i] == kFull) continue;
    if (types[i] != kWindowed) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}[{}]: '{}' is not supported; known are {}, {}, {}",
                              config.path_of("layer_types"), i, types[i], kConv, kWindowed, kFull));
    }
    layer.sliding_window = window;
    if (window == 0) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: null, but layer_types[{}] is {}; expected a number of tokens",
                              config.path_of("sliding_window"), i, kWindowed));
    }
  }
}

void read_lfm3_ropes(const JsonReader& config, ModelConfig& model) {
  Json json = config.json();
  if (!config.has("rope_parameters") && !config.has("rope_scaling")) {
    json["rope_parameters"] = Json::parse(
        R"({"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5,
                               "rope_theta": 1000000.0}})");
  }
  read_rope_by_window(config.in_place(json), model,
                      {.layer_type = kWindowed, .widens_context = false},
                      {.default_theta = 1e6, .layer_type = kFull, .widens_context = false});
}

ModelConfig read_lfm3(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.norm_eps = "norm_eps",
                                                   .activation = "",
                                                   .default_vocab_size = 128000,
                                                   .default_hidden_size = 2048,
                                                   .default_num_layers = 24,
                                                   .default_num_heads = 16,
                                                   .default_num_kv_heads = 4,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 7680,
                                                   .default_max_positions = 128000,
                                                   .default_norm_eps = 1e-5,
                                                   .default_tied = true,
                                                   .default_bos = 124894,
                                                   .default_eos = 124900});
  read_short_convolution(config, 7, model);
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.has_output_gate = config.boolean_or("use_attention_gate", true);
  model.has_post_norms = config.boolean_or("use_sandwich_norm", true);
  read_lfm3_layers(config, model);
  read_lfm3_ropes(config, model);
  return model;
}

constexpr bool has_lfm3_gate(const ModelConfig& config, int32_t /*layer*/) {
  return config.has_output_gate;
}
constexpr bool has_lfm3_post_norms(const ModelConfig& config, int32_t /*layer*/) {
  return config.has_post_norms;
}

constexpr auto kLfm3Fields =
    join_fields(std::to_array<KnownField>({
                    read("norm_eps"),
                    read("conv_L_cache"),
                    read("conv_bias"),
                    read_or_null("layer_types"),
                    read_or_null("sliding_window"),
                    read_or_null("attention_bias"),
                    read("use_sandwich_norm"),
                    read("use_attention_gate"),
                    harmless("rms_norm_eps", "norm_eps says it"),
                    harmless_if("hidden_act", R"(["silu", "swish"])", "the MLP has silu"),
                }),
                kDecoderFields);

constexpr auto kLfm3VlFields = join_fields(kMultimodalFields,
                                           std::to_array<KnownField>({
                                               harmless("projector_hidden_size", kImages),
                                               harmless("projector_bias", kImages),
                                           }));

constexpr auto kLfm3Names = std::to_array<std::string_view>({"Lfm3ForCausalLM"});
constexpr auto kLfm3Types = std::to_array<std::string_view>({"lfm3"});
constexpr auto kLfm3VlNames = std::to_array<std::string_view>({"Lfm3VlForConditionalGeneration"});
constexpr auto kLfm3VlTypes = std::to_array<std::string_view>({"lfm3_vl"});

constexpr auto kLfm3Tensors =
    join_tensors(kLlamaEmbeddingTensors,
                 kLlamaAttentionTensors,
                 kLlamaQkvBiasTensors,
                 kLlamaOBiasTensors,
                 kQkNormTensors,
                 kLfmTensors,
                 std::to_array<TensorSpec>({
                     {Role::kAttentionPostNorm, "model.layers.{layer}.post_operator_norm.weight",
                      Dim::kOne, Dim::kHidden, Split::kNone, has_lfm3_post_norms},
                     {Role::kMlpPostNorm, "model.layers.{layer}.post_ffn_norm.weight", Dim::kOne,
                      Dim::kHidden, Split::kNone, has_lfm3_post_norms},
                     {Role::kOutputGate, "model.layers.{layer}.self_attn.gate_proj.weight",
                      Dim::kHeads, Dim::kHidden, Split::kRows, has_lfm3_gate},
                 }));

// As `transformers` calls them within.
constexpr auto kLfm3Renames = std::to_array<TensorRename>({
    {".self_attn.g_proj.", ".self_attn.gate_proj."},
});

}  // namespace

extern const Architecture kLfm3;
constexpr Architecture kLfm3 = {
    .names = kLfm3Names,
    .model_types = kLfm3Types,
    .prefix = "model.",
    .read_config = read_lfm3,
    .fields = kLfm3Fields,
    .tensors = kLfm3Tensors,
    .renames = kLfm3Renames,
    .ignored = kRotaryTables,
};

extern const Architecture kLfm3Vl;
constexpr Architecture kLfm3Vl =
    multimodal_of(kLfm3VlNames, kLfm3VlTypes, R"({"model_type": "lfm3"})", kLfm3VlFields);

}  // namespace tgi
