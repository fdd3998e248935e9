// ERNIE 4.5, dense: Llama's block with neighbours of a head rotated.
// Source: models/ernie4_5 in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kDecoder = {
    .default_vocab_size = 103424,
    .default_hidden_size = 1024,
    .default_num_layers = 18,
    .default_num_heads = 16,
    .default_num_kv_heads = 2,
    .default_head_dim = 128,
    .default_intermediate = 3072,
    .default_max_positions = 131072,
    .default_norm_eps = 1e-5,
    .default_tied = true,
};

ModelConfig read_config(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kDecoder);
  model.attention_bias = config.boolean_or("use_bias", false);
  model.mlp_bias = model.attention_bias;
  read_rope(config, model, {.default_theta = 500000.0, .interleaved = true});
  refuse_windows(config, model);
  return model;
}

constexpr auto kFields = join_fields(
    std::to_array<KnownField>({
        read_or_null("use_bias"),
        read_or_null("layer_types"),
        read_or_null("sliding_window"),
        read_or_null("use_sliding_window"),
        harmless_if("rope_interleaved", "[true]", "neighbours of a head are rotated"),
        harmless_if("rope_traditional", "[true]", "neighbours of a head are rotated"),
        harmless_if("attention_bias", "[false]", "use_bias says which biases there are"),
        harmless_if("mlp_bias", "[false]", "use_bias says which biases there are"),
    }),
    kDecoderFields);

constexpr auto kNames =
    std::to_array<std::string_view>({"Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"});
constexpr auto kModelTypes = std::to_array<std::string_view>({"ernie4_5"});

constexpr auto kTensors = join_tensors(kLlamaOuterTensors,
                                       kLlamaNormTensors,
                                       kLlamaAttentionTensors,
                                       kLlamaQkvBiasTensors,
                                       kLlamaOBiasTensors,
                                       kLlamaMlpTensors,
                                       kLlamaMlpBiasTensors);

}  // namespace

extern const Architecture kErnie45;
constexpr Architecture kErnie45 = {
    .names = kNames,
    .model_types = kModelTypes,
    .prefix = "model.",
    .read_config = read_config,
    .fields = kFields,
    .tensors = kTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
