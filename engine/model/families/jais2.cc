// Jais 2: Llama's block with LayerNorms and an MLP without a gate, biases unless the config says
// otherwise. Source: models/jais2 in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_jais2(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.norm_eps = "layer_norm_eps",
                                                   .default_vocab_size = 150272,
                                                   .default_hidden_size = 3328,
                                                   .default_num_heads = 26,
                                                   .default_intermediate = 26624,
                                                   .default_max_positions = 8192,
                                                   .default_norm_eps = 1e-5,
                                                   .default_activation = "relu2",
                                                   .default_bos = 0,
                                                   .default_eos = 150024});
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.attention_bias = config.boolean_or("attention_bias", true);
  model.mlp_bias = config.boolean_or("mlp_bias", true);
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

constexpr auto kJais2Fields = join_fields(std::to_array<KnownField>({
                                              read("layer_norm_eps"),
                                              read_or_null("attention_bias"),
                                              read_or_null("mlp_bias"),
                                              read_or_null("layer_types"),
                                              read_or_null("sliding_window"),
                                              read_or_null("use_sliding_window"),
                                              harmless("rms_norm_eps", "layer_norm_eps says it"),
                                          }),
                                          kDecoderFields);

constexpr auto kJais2Names = std::to_array<std::string_view>({"Jais2ForCausalLM"});
constexpr auto kJais2Types = std::to_array<std::string_view>({"jais2"});

constexpr auto kJais2Tensors = join_tensors(kLlamaOuterTensors,
                                            kLlamaNormTensors,
                                            kLlamaNormBiasTensors,
                                            kLlamaAttentionTensors,
                                            kLlamaQkvBiasTensors,
                                            kLlamaOBiasTensors,
                                            kUngatedMlpTensors);

}  // namespace

extern const Architecture kJais2;
constexpr Architecture kJais2 = {
    .names = kJais2Names,
    .model_types = kJais2Types,
    .prefix = "model.",
    .read_config = read_jais2,
    .fields = kJais2Fields,
    .tensors = kJais2Tensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
