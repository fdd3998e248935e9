// Muse Glimmer, a checkpoint that sees, and its text model: gated attention with windows, rotated
// only where the config has a base for the layer, heads of q and k that are normed without weights,
// Gemma's norms before and after the branches, and one behind the embedding. Source:
// models/muse_glimmer in `transformers`.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr std::string_view kBases = "layer_rope_theta";

// Where the config has no list, every fourth layer from the last one on is of the other kind: it
// sees everything, and is not rotated.
bool is_fourth_from_last(size_t layer, const ModelConfig& model) {
  return (static_cast<size_t>(model.num_layers) - 1 - layer) % 4 == 0;
}

void read_muse_windows(const JsonReader& config, ModelConfig& model) {
  Json json = config.json();
  if (!config.has("layer_types")) {
    json["layer_types"] = Json::array();
    for (size_t i = 0; i < model.layers.size(); ++i) {
      json["layer_types"].push_back(is_fourth_from_last(i, model) ? "full_attention"
                                                                  : "sliding_attention");
    }
  }
  read_windows(config.in_place(json), {.default_window = 2048, .null_is_no_window = false}, model);
}

// The list says which layers are rotated; the base is that of rope_parameters for all of them.
void read_rotating_bases(const JsonReader& config, ModelConfig& model) {
  const JsonReader rope = config.has("rope_parameters") ? config.object("rope_parameters") : config;
  const double base = rope.number_or("rope_theta", 10000.0);
  const Json* const bases =
      config.has(kBases) ? &read_layer_numbers(config, kBases, model) : nullptr;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    bool is_rotated = !is_fourth_from_last(i, model);
    if (bases != nullptr) {
      const Json& said = (*bases)[i];
      if (!said.is_number() || (said != 0 && said != base)) {
        throw Error(
            Code::kInvalidArgument,
            fmt::format("{}: entry {} is {}, expected 0 or {}, the rope_theta of all layers",
                        config.path_of(kBases), i, said.dump(), base));
      }
      is_rotated = said != 0;
    }
    if (!is_rotated) model.layers[i].rope = kNoRope;
  }
}

ModelConfig read_muse_glimmer(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.activation = "hidden_activation",
                                                   .default_vocab_size = 202048,
                                                   .default_hidden_size = 6656,
                                                   .default_num_layers = 52,
                                                   .default_num_heads = 32,
                                                   .default_num_kv_heads = 2,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 19968,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = 200000,
                                                   .default_eos = 200001});
  model.norm_weight_offset = 1.0F;
  model.final_norm_as_stored = true;
  model.norms_embedding = true;
  model.post_norm_eps = read_positive(config, "post_norm_eps", 1e-8);
  model.has_output_gate = true;
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.attention_scale *= read_positive(config, "qk_scale_factor", 3.87);
  model.logit_scale = read_positive(config, "output_multiplier", 0.19611613513818404);
  model.logit_softcap = read_positive(config, "final_logit_softcapping", 20.0);
  read_muse_windows(config, model);
  read_rope(config, model);
  read_rotating_bases(config, model);
  for (LayerPlan& layer : model.layers) layer.divides_qk = true;
  return model;
}

constexpr auto kMuseGlimmerFields =
    join_fields(std::to_array<KnownField>({
                    harmless("hidden_act", "hidden_activation says it"),
                    read("hidden_activation"),
                    read_or_null("attention_bias"),
                    read("sliding_window"),
                    read_or_null("layer_types"),
                    read_or_null("layer_rope_theta"),
                    read("post_norm_eps"),
                    read("qk_scale_factor"),
                    read("output_multiplier"),
                    read("final_logit_softcapping"),
                }),
                kDecoderFields);

constexpr auto kMuseSeeingFields = join_fields(kMultimodalFields,
                                               std::to_array<KnownField>({
                                                   harmless("out_hidden_size", kImages),
                                                   harmless("projector_hidden_size", kImages),
                                               }));

constexpr auto kMuseSeeingIgnored = std::to_array<std::string_view>({
    "vision_tower.*",
    "vision_adapter.*",
    "vision_projection.*",
});

constexpr auto kMuseGlimmerNames = std::to_array<std::string_view>({"MuseGlimmerTextModel"});
constexpr auto kMuseGlimmerTypes = std::to_array<std::string_view>({"muse_glimmer_text"});
constexpr auto kMuseSeeingNames =
    std::to_array<std::string_view>({"MuseGlimmerForConditionalGeneration"});
constexpr auto kMuseSeeingTypes = std::to_array<std::string_view>({"muse_glimmer"});

constexpr auto kMuseGlimmerTensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaAttentionTensors,
                 kLlamaQkvBiasTensors,
                 kLlamaOBiasTensors,
                 kLlamaMlpTensors,
                 kFourNormTensors,
                 std::to_array<TensorSpec>({
                     {Role::kOutputGate, "model.layers.{layer}.self_attn.gate_proj.weight", Dim::kQ,
                      Dim::kHidden, Split::kRows},
                 }));

}  // namespace

extern const Architecture kMuseGlimmer;
constexpr Architecture kMuseGlimmer = {
    .names = kMuseGlimmerNames,
    .model_types = kMuseGlimmerTypes,
    .prefix = "model.",
    .read_config = read_muse_glimmer,
    .fields = kMuseGlimmerFields,
    .tensors = kMuseGlimmerTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kMuseGlimmerSeeing;
constexpr Architecture kMuseGlimmerSeeing = multimodal_of(kMuseSeeingNames,
                                                          kMuseSeeingTypes,
                                                          R"({"model_type": "muse_glimmer_text"})",
                                                          kMuseSeeingFields,
                                                          kMuseSeeingIgnored);

}  // namespace tgi
