// Granite 3, dense: Llama's block with multipliers of embedding, branches, scores and logits.
// Source: models/granite in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_config(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  model.embedding_multiplier = read_positive(config, "embedding_multiplier", 1.0);
  model.residual_multiplier = read_positive(config, "residual_multiplier", 1.0);
  model.attention_scale = read_positive(config, "attention_multiplier", 1.0);
  model.logit_scale = 1.0F / read_positive(config, "logits_scaling", 1.0);
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

constexpr auto kFields = join_fields(kDecoderFields,
                                     std::to_array<KnownField>({
                                         read_or_null("attention_bias"),
                                         read_or_null("mlp_bias"),
                                         read("embedding_multiplier"),
                                         read("residual_multiplier"),
                                         read("attention_multiplier"),
                                         read("logits_scaling"),
                                         read_or_null("layer_types"),
                                         read_or_null("sliding_window"),
                                         read_or_null("use_sliding_window"),
                                     }));

constexpr auto kNames = std::to_array<std::string_view>({"GraniteForCausalLM"});
constexpr auto kModelTypes = std::to_array<std::string_view>({"granite"});

constexpr auto kTensors = join_tensors(kLlamaOuterTensors,
                                       kLlamaNormTensors,
                                       kLlamaAttentionTensors,
                                       kLlamaQkvBiasTensors,
                                       kLlamaOBiasTensors,
                                       kLlamaMlpTensors,
                                       kLlamaMlpBiasTensors);

}  // namespace

extern const Architecture kGranite;
constexpr Architecture kGranite = {
    .names = kNames,
    .model_types = kModelTypes,
    .prefix = "model.",
    .read_config = read_config,
    .fields = kFields,
    .tensors = kTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
