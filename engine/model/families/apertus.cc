// Apertus: Llama's block with an RMS norm on each head of q and k, and an MLP without a gate whose
// activation, xIELU, has learned numbers in each layer.
// Source: models/apertus and activations.py in `transformers`; https://arxiv.org/abs/2509.14233.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kApertusDecoder = {
    .default_vocab_size = 131072,
    .default_intermediate = 14336,
    .default_max_positions = 65536,
    .default_norm_eps = 1e-5,
    .default_activation = "xielu",
    .takes_xielu = true,
};

// A config without a rope is taken to have this one.
Json with_rope(const Json& config) {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!config.value(key, Json()).is_null()) return config;
  }
  Json out = config;
  out["rope_scaling"] = {{"rope_type", "llama3"},
                         {"factor", 8.0},
                         {"high_freq_factor", 4.0},
                         {"low_freq_factor", 1.0},
                         {"original_max_position_embeddings", 8192}};
  return out;
}

ModelConfig read_apertus(const JsonReader& given) {
  const Json json = with_rope(given.json());
  const JsonReader config(json, "");
  ModelConfig model = read_decoder_config(config, kApertusDecoder);
  model.gated_mlp = false;
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_rope(config, model, {.default_theta = 12e6});
  refuse_windows(config, model);
  return model;
}

constexpr auto kApertusFields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("layer_types"),
                    read_or_null("sliding_window"),
                    read_or_null("use_sliding_window"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                    harmless_if("qk_norm", "[true]", "heads of q and k are normed"),
                    harmless_if("post_norm", "[false]", "norms stand before the branches"),
                }));

constexpr bool has_xielu(const ModelConfig& config, int32_t /*layer*/) {
  return config.activation == Activation::kXielu;
}

constexpr auto kOwnTensors = std::to_array<TensorSpec>({
    {Role::kAttentionNorm, "model.layers.{layer}.attention_layernorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNorm, "model.layers.{layer}.feedforward_layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kXieluAlphaP, "model.layers.{layer}.mlp.act_fn.alpha_p", Dim::kOne, Dim::kOne,
     Split::kNone, has_xielu},
    {Role::kXieluAlphaN, "model.layers.{layer}.mlp.act_fn.alpha_n", Dim::kOne, Dim::kOne,
     Split::kNone, has_xielu},
    {.role = Role::kXieluBeta,
     .name = "model.layers.{layer}.mlp.act_fn.beta",
     .rows = Dim::kOne,
     .cols = Dim::kOne,
     .only_if = has_xielu,
     .is_scalar = true},
    {.role = Role::kXieluEps,
     .name = "model.layers.{layer}.mlp.act_fn.eps",
     .rows = Dim::kOne,
     .cols = Dim::kOne,
     .only_if = has_xielu,
     .is_scalar = true},
});

constexpr auto kApertusNames = std::to_array<std::string_view>({"ApertusForCausalLM"});
constexpr auto kApertusTypes = std::to_array<std::string_view>({"apertus"});

constexpr auto kApertusTensors = join_tensors(kLlamaOuterTensors,
                                              kOwnTensors,
                                              kLlamaAttentionTensors,
                                              kLlamaQkvBiasTensors,
                                              kLlamaOBiasTensors,
                                              kQkNormTensors,
                                              kUngatedMlpTensors);

}  // namespace

extern const Architecture kApertus;
constexpr Architecture kApertus = {
    .names = kApertusNames,
    .model_types = kApertusTypes,
    .prefix = "model.",
    .read_config = read_apertus,
    .fields = kApertusFields,
    .tensors = kApertusTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
