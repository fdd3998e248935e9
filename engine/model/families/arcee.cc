// Arcee (AFM): Llama's block with an MLP without a gate.
// Source: models/arcee in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kArceeDecoder = {
    .default_hidden_size = 2560,
    .default_intermediate = 18432,
    .default_max_positions = 4096,
    .default_norm_eps = 1e-5,
    .default_activation = "relu2",
    .default_bos = 128000,
    .default_eos = 128001,
};

ModelConfig read_arcee(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kArceeDecoder);
  model.gated_mlp = false;
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

constexpr auto kArceeFields = join_fields(kDecoderFields,
                                          std::to_array<KnownField>({
                                              read_or_null("attention_bias"),
                                              read_or_null("mlp_bias"),
                                              read_or_null("layer_types"),
                                              read_or_null("sliding_window"),
                                              read_or_null("use_sliding_window"),
                                          }));

constexpr auto kArceeNames = std::to_array<std::string_view>({"ArceeForCausalLM"});
constexpr auto kArceeTypes = std::to_array<std::string_view>({"arcee"});

constexpr auto kArceeTensors = join_tensors(kLlamaOuterTensors,
                                            kLlamaNormTensors,
                                            kLlamaAttentionTensors,
                                            kLlamaQkvBiasTensors,
                                            kLlamaOBiasTensors,
                                            kUngatedMlpTensors);

}  // namespace

extern const Architecture kArcee;
constexpr Architecture kArcee = {
    .names = kArceeNames,
    .model_types = kArceeTypes,
    .prefix = "model.",
    .read_config = read_arcee,
    .fields = kArceeFields,
    .tensors = kArceeTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
