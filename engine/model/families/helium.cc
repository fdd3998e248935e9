// Helium: Llama's block with neighbours of a head rotated.
// Source: models/helium in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kHeliumDecoder = {
    .default_vocab_size = 48000,
    .default_hidden_size = 2560,
    .default_num_layers = 24,
    .default_num_heads = 20,
    .default_num_kv_heads = 20,
    .default_head_dim = 128,
    .default_intermediate = 7040,
    .default_max_positions = 4096,
    .default_norm_eps = 1e-8,
};

ModelConfig read_helium(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kHeliumDecoder);
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_rope(config, model, {.default_theta = 100000.0, .interleaved = true});
  refuse_windows(config, model);
  return model;
}

constexpr auto kHeliumFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("mlp_bias"),
                    read_or_null("layer_types"),
                    read_or_null("sliding_window"),
                    read_or_null("use_sliding_window"),
                    harmless_if("rope_interleaved", "[true]", "neighbours of a head are rotated"),
                    harmless_if("rope_traditional", "[true]", "neighbours of a head are rotated"),
                }),
                kDecoderFields);

constexpr auto kHeliumNames = std::to_array<std::string_view>({"HeliumForCausalLM"});
constexpr auto kHeliumTypes = std::to_array<std::string_view>({"helium"});

constexpr auto kHeliumTensors = join_tensors(kLlamaOuterTensors,
                                             kLlamaNormTensors,
                                             kLlamaAttentionTensors,
                                             kLlamaQkvBiasTensors,
                                             kLlamaMlpTensors,
                                             kLlamaMlpBiasTensors);

}  // namespace

extern const Architecture kHelium;
constexpr Architecture kHelium = {
    .names = kHeliumNames,
    .model_types = kHeliumTypes,
    .prefix = "model.",
    .read_config = read_helium,
    .fields = kHeliumFields,
    .tensors = kHeliumTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
