// Mistral and Ministral: Llama's block with a sliding window in every layer, or in those that
// layer_types names.
// Source: models/mistral and models/ministral in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_mistral(const JsonReader& config) {
  ModelConfig model = read_decoder_config(
      config,
      {.default_num_kv_heads = 8, .default_intermediate = 14336, .default_max_positions = 131072});
  read_windows(config, {}, model);
  read_rope(config, model);
  return model;
}

constexpr auto kMistralFields = join_fields(
    kDecoderFields,
    std::to_array<KnownField>({
        read_or_null("sliding_window"),
        read_or_null("layer_types"),
        harmless_if("use_sliding_window", "[true]", "sliding_window alone says it, null is none"),
        harmless_if("attention_bias", "[false]", "there are no biases"),
        harmless_if("qkv_bias", "[false]", "there are no biases"),
        harmless_if("mlp_bias", "[false]", "there are no biases"),
    }));

constexpr auto kMistralNames =
    std::to_array<std::string_view>({"MistralForCausalLM", "MinistralForCausalLM"});
constexpr auto kMistralTypes = std::to_array<std::string_view>({"mistral", "ministral"});

constexpr auto kMistralTensors =
    join_tensors(kLlamaOuterTensors, kLlamaNormTensors, kLlamaAttentionTensors, kLlamaMlpTensors);

}  // namespace

extern const Architecture kMistral;
constexpr Architecture kMistral = {
    .names = kMistralNames,
    .model_types = kMistralTypes,
    .prefix = "model.",
    .read_config = read_mistral,
    .fields = kMistralFields,
    .tensors = kMistralTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
