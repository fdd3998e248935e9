// Cohere Compass (North Micro Vision): Cohere 2's block with halves of a head rotated, where the
// config names a rotation for the type of the layer. With eyes it is the same text model.
// Source: models/cohere_compass in `transformers`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/cohere_decoder.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr std::string_view kCompassTypes[] = {"full_attention", "sliding_attention"};
constexpr std::string_view kCompassRopes = "rope_parameters";

// Of the types of layers; null: they have one for all.
const Json* find_compass_ropes(const JsonReader& config) {
  if (!config.has(kCompassRopes)) return nullptr;
  const Json& ropes = config.json().at(std::string(kCompassRopes));
  const bool is_nested = std::ranges::any_of(
      kCompassTypes, [&](std::string_view type) { return ropes.contains(type); });
  return is_nested ? &ropes : nullptr;
}

void read_compass_ropes(const JsonReader& config, ModelConfig& model) {
  const Json* const ropes = find_compass_ropes(config);
  for (const std::string_view type : kCompassTypes) {
    const bool is_windowed = type != kCompassTypes[0];
    const auto is_meant = [&](const LayerPlan& layer) {
      return (layer.sliding_window > 0) == is_windowed;
    };
    if (std::ranges::none_of(model.layers, is_meant)) continue;
    if (ropes != nullptr && !ropes->contains(type)) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}.{}: expected a rotation, or null for none, as there are such "
                              "layers; got no field",
                              config.path_of(kCompassRopes), type));
    }
    const bool is_rotated = ropes == nullptr || !ropes->at(type).is_null();
    const int32_t rope =
        is_rotated ? add_rope(config, {.layer_type = type, .widens_context = false}, model)
                   : kNoRope;
    for (LayerPlan& layer : model.layers) {
      if (is_meant(layer)) layer.rope = rope;
    }
  }
}

ModelConfig read_compass(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kCohereDecoder);
  model.norm_kind = NormKind::kLayer;
  model.parallel_branches = true;
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.logit_scale = read_optional_positive(config, "logit_scale", std::nullopt).value_or(1.0F);
  // Without layer_types no layer has a window.
  if (config.has("layer_types")) read_windows(config, {.null_is_no_window = false}, model);
  read_compass_ropes(config, model);
  return model;
}

constexpr auto kCompassFields = join_fields(
    std::to_array<KnownField>({
        read("layer_norm_eps"),
        read_or_null("logit_scale"),
        read_or_null("attention_bias"),
        read_or_null("layer_types"),
        read_or_null("sliding_window"),
        harmless_if("rms_norm_eps", "[]", "the norms are not of that kind"),
        harmless("sliding_window_pattern", "layer_types says which layers have windows"),
        harmless("pooling", "is about sentences that are classified"),
    }),
    kDecoderFields);

constexpr auto kCompassNames = std::to_array<std::string_view>({"CohereCompassForCausalLM"});
constexpr auto kCompassModelTypes = std::to_array<std::string_view>({"cohere_compass_text"});
constexpr auto kCompassVisionNames =
    std::to_array<std::string_view>({"CohereCompassForConditionalGeneration"});
constexpr auto kCompassVisionTypes = std::to_array<std::string_view>({"cohere_compass"});

constexpr auto kCompassTensors = join_tensors(kLlamaOuterTensors,
                                              kOneNormTensors,
                                              kLlamaAttentionTensors,
                                              kLlamaQkvBiasTensors,
                                              kLlamaOBiasTensors,
                                              kLlamaMlpTensors);

}  // namespace

extern const Architecture kCohereCompass;
constexpr Architecture kCohereCompass = {
    .names = kCompassNames,
    .model_types = kCompassModelTypes,
    .prefix = "model.",
    .read_config = read_compass,
    .fields = kCompassFields,
    .tensors = kCompassTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kCohereCompassVision;
constexpr Architecture kCohereCompassVision =
    multimodal_of(kCompassVisionNames,
                  kCompassVisionTypes,
                  R"({"model_type": "cohere_compass_text", "tie_word_embeddings": false})");

}  // namespace tgi
