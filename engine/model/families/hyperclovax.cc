// HyperCLOVA X SEED Think: Granite's multipliers, of which that of the logits multiplies, and a
// norm after each branch too, unless the config says otherwise. Source: models/hyperclovax in
// `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_hyperclovax(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  model.has_post_norms = config.boolean_or("use_post_norm", true);
  model.embedding_multiplier = read_positive(config, "embedding_multiplier", 1.0);
  model.residual_multiplier = read_positive(config, "residual_multiplier", 1.0);
  model.logit_scale = read_positive(config, "logits_scaling", 1.0);
  if (const auto scale = read_optional_positive(config, "attention_multiplier", {})) {
    model.attention_scale = *scale;
  }
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

constexpr auto kHyperClovaXFields = join_fields(kDecoderFields,
                                                std::to_array<KnownField>({
                                                    read_or_null("attention_bias"),
                                                    read_or_null("mlp_bias"),
                                                    read("use_post_norm"),
                                                    read("embedding_multiplier"),
                                                    read("residual_multiplier"),
                                                    read("logits_scaling"),
                                                    read_or_null("attention_multiplier"),
                                                    read_or_null("layer_types"),
                                                    read_or_null("sliding_window"),
                                                    read_or_null("use_sliding_window"),
                                                }));

constexpr auto kHyperClovaXNames = std::to_array<std::string_view>({"HyperCLOVAXForCausalLM"});
constexpr auto kHyperClovaXTypes = std::to_array<std::string_view>({"hyperclovax"});

constexpr bool has_hyperclovax_post_norm(const ModelConfig& config, int32_t /*layer*/) {
  return config.has_post_norms;
}

constexpr auto kHyperClovaXTensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 std::to_array<TensorSpec>({
                     {Role::kAttentionPostNorm, "model.layers.{layer}.post_norm1.weight", Dim::kOne,
                      Dim::kHidden, Split::kNone, has_hyperclovax_post_norm},
                     {Role::kMlpPostNorm, "model.layers.{layer}.post_norm2.weight", Dim::kOne,
                      Dim::kHidden, Split::kNone, has_hyperclovax_post_norm},
                 }),
                 kLlamaAttentionTensors,
                 kLlamaQkvBiasTensors,
                 kLlamaOBiasTensors,
                 kLlamaMlpTensors,
                 kLlamaMlpBiasTensors);

}  // namespace

extern const Architecture kHyperClovaX;
constexpr Architecture kHyperClovaX = {
    .names = kHyperClovaXNames,
    .model_types = kHyperClovaXTypes,
    .prefix = "model.",
    .read_config = read_hyperclovax,
    .fields = kHyperClovaXFields,
    .tensors = kHyperClovaXTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
