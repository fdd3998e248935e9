// Nemotron 4 and Minitron: layer norms with biases and with weights stored less one, an MLP without
// a gate, and half of a head rotated.
// Source: models/nemotron in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kNemotronDecoder = {
    .norm_eps = "norm_eps",
    .default_vocab_size = 256000,
    .default_hidden_size = 6144,
    .default_num_heads = 48,
    .default_intermediate = 24576,
    .default_max_positions = 4096,
    .default_norm_eps = 1e-5,
    .default_activation = "relu2",
    .default_bos = 2,
    .default_eos = 3,
};

ModelConfig read_nemotron(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kNemotronDecoder);
  model.norm_kind = NormKind::kLayer;
  model.norm_weight_offset = 1.0F;
  model.gated_mlp = false;
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_rope(config, model, {.takes_partial = true, .default_partial = 0.5});
  refuse_windows(config, model);
  return model;
}

constexpr auto kNemotronFields =
    join_fields(std::to_array<KnownField>({
                    read("norm_eps"),
                    harmless_if("rms_norm_eps", "[]", "norm_eps says it"),
                    harmless_if("rope_percent", "[0.5]", "partial_rotary_factor says it"),
                    read_or_null("attention_bias"),
                    read_or_null("mlp_bias"),
                    read_or_null("layer_types"),
                    read_or_null("sliding_window"),
                    read_or_null("use_sliding_window"),
                }),
                kDecoderFields);

constexpr auto kNemotronNames = std::to_array<std::string_view>({"NemotronForCausalLM"});
constexpr auto kNemotronTypes = std::to_array<std::string_view>({"nemotron"});

constexpr auto kNemotronTensors = join_tensors(kLlamaOuterTensors,
                                               kLlamaNormTensors,
                                               kLlamaNormBiasTensors,
                                               kLlamaAttentionTensors,
                                               kLlamaQkvBiasTensors,
                                               kLlamaOBiasTensors,
                                               kUngatedMlpTensors);

}  // namespace

extern const Architecture kNemotron;
constexpr Architecture kNemotron = {
    .names = kNemotronNames,
    .model_types = kNemotronTypes,
    .prefix = "model.",
    .read_config = read_nemotron,
    .fields = kNemotronFields,
    .tensors = kNemotronTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
