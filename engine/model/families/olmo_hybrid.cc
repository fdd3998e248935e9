// OLMo Hybrid: the gated delta rule in most layers, between norms of what branches read, and OLMo
// 3's attention in the others, rotated or not, which norm what branches add. Source:
// models/olmo_hybrid in `transformers`.
#include <algorithm>
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/delta_rule_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"
#include "engine/model/state_fields.h"

namespace tgi {
namespace {

// A base that is null is no rotation. rope_scaling stands for rope_parameters where both are there,
// and what either says goes before the field beside it.
bool rotates(const JsonReader& config) {
  constexpr const char* kBase = "rope_theta";
  const auto object_of = [&](const char* key) {
    return config.has(key) ? config.object(key).json() : Json::object();
  };
  Json rope = object_of("rope_scaling");
  if (rope.empty()) rope = object_of("rope_parameters");
  const Json& says = rope.contains(kBase) ? rope : config.json();
  return !says.contains(kBase) || !says.at(kBase).is_null();
}

// Every fourth layer is one of attention, or the last, where there are fewer.
void use_default_layers(ModelConfig& model) {
  use_attention_every(4, 3, model);
  if (model.num_layers >= 4) return;
  model.layers.back().has_attention = true;
  model.layers.back().has_state = false;
}

ModelConfig read_olmo_hybrid(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 100352,
                                                   .default_hidden_size = 3840,
                                                   .default_num_heads = 30,
                                                   .default_max_positions = 65536,
                                                   .default_bos = -1,
                                                   .default_eos = 100257});
  model.qk_norm = QkNorm::kRow;
  model.attention_bias = config.boolean_or("attention_bias", false);
  if (rotates(config)) read_rope(config, model);
  const int32_t num_key_heads =
      read_size(config, "linear_num_key_heads", model.num_heads, kMaxHeads);
  const int32_t key_dim =
      read_size(config, "linear_key_head_dim", int64_t{model.hidden_size} * 3 / 4 / num_key_heads,
                kMaxHeadDim);
  read_delta_rule(config,
                  {.num_key_heads = num_key_heads,
                   .num_value_heads = model.num_heads,
                   .key_head_dim = key_dim,
                   .value_head_dim = int64_t{2} * key_dim},
                  model);
  model.state.norm_eps = 1e-5F;
  // Changes of up to twice what is new let a state turn its sign.
  if (config.boolean_or("linear_allow_neg_eigval", true)) model.state.strength = 2.0F;
  if (config.has("layer_types")) {
    read_mixer_types(config, "layer_types",
                     {.attention = "full_attention", .state = "linear_attention"}, model);
  } else {
    use_default_layers(model);
  }
  return model;
}

constexpr bool has_state_here(const ModelConfig& config, int32_t layer) {
  return config.layers[static_cast<size_t>(layer)].has_state;
}
constexpr bool has_attention_here(const ModelConfig& config, int32_t layer) {
  return config.layers[static_cast<size_t>(layer)].has_attention;
}

constexpr auto kOlmoHybridFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("layer_types"),
                    read_or_null("rope_theta"),
                    read("linear_conv_kernel_dim"),
                    read_or_null("linear_key_head_dim"),
                    read_or_null("linear_value_head_dim"),
                    read_or_null("linear_num_key_heads"),
                    read_or_null("linear_num_value_heads"),
                    read("linear_allow_neg_eigval"),
                    kSiluOfConvolutions,
                    harmless("linear_a_log_min", kStartsTraining),
                    harmless("linear_a_log_max", kStartsTraining),
                    harmless("linear_dt_min", kStartsTraining),
                    harmless("linear_dt_max", kStartsTraining),
                    harmless("linear_dt_init_floor", kStartsTraining),
                    harmless_if("linear_use_gate", "[true]", "what the rule gives is gated"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                }),
                kDecoderFields);

constexpr auto kOlmoHybridNames = std::to_array<std::string_view>({"OlmoHybridForCausalLM"});
constexpr auto kOlmoHybridTypes = std::to_array<std::string_view>({"olmo_hybrid"});

constexpr auto kOlmoHybridTensors = join_tensors(
    kLlamaOuterTensors,
    std::to_array<TensorSpec>({
        {Role::kAttentionNorm, "model.layers.{layer}.attention_layer_norm.weight", Dim::kOne,
         Dim::kHidden, Split::kNone, has_state_here},
        {Role::kMlpNorm, "model.layers.{layer}.feedforward_layer_norm.weight", Dim::kOne,
         Dim::kHidden, Split::kNone, has_state_here},
        {Role::kAttentionPostNorm, "model.layers.{layer}.post_attention_layernorm.weight",
         Dim::kOne, Dim::kHidden, Split::kNone, has_attention_here},
        {Role::kMlpPostNorm, "model.layers.{layer}.post_feedforward_layernorm.weight", Dim::kOne,
         Dim::kHidden, Split::kNone, has_attention_here},
        {Role::kStateIn, "model.layers.{layer}.linear_attn.q_proj.weight", Dim::kStateKeys,
         Dim::kHidden},
        {Role::kStateKeyIn, "model.layers.{layer}.linear_attn.k_proj.weight", Dim::kStateKeys,
         Dim::kHidden},
        {Role::kStateValueIn, "model.layers.{layer}.linear_attn.v_proj.weight", Dim::kStateChannels,
         Dim::kHidden},
        {Role::kStateGateIn, "model.layers.{layer}.linear_attn.g_proj.weight", Dim::kStateChannels,
         Dim::kHidden},
        {Role::kStateSecondIn, "model.layers.{layer}.linear_attn.b_proj.weight", Dim::kStateHeads,
         Dim::kHidden},
        {Role::kStateThirdIn, "model.layers.{layer}.linear_attn.a_proj.weight", Dim::kStateHeads,
         Dim::kHidden},
        {Role::kConv, "model.layers.{layer}.linear_attn.{qkv}_conv1d.weight", Dim::kOne,
         Dim::kConvWeights},
        {Role::kStateStepBias, "model.layers.{layer}.linear_attn.dt_bias", Dim::kOne,
         Dim::kStateHeads},
        {Role::kDecay, "model.layers.{layer}.linear_attn.A_log", Dim::kOne, Dim::kStateHeads},
        {Role::kStateNorm, "model.layers.{layer}.linear_attn.o_norm.weight", Dim::kOne,
         Dim::kStateHeadDim},
        {Role::kStateOut, "model.layers.{layer}.linear_attn.o_proj.weight", Dim::kHidden,
         Dim::kStateChannels},
    }),
    kLlamaAttentionTensors,
    kLlamaQkvBiasTensors,
    kLlamaOBiasTensors,
    kQkRowNormTensors,
    kLlamaMlpTensors);

}  // namespace

extern const Architecture kOlmoHybrid;
constexpr Architecture kOlmoHybrid = {
    .names = kOlmoHybridNames,
    .model_types = kOlmoHybridTypes,
    .prefix = "model.",
    .read_config = read_olmo_hybrid,
    .fields = kOlmoHybridFields,
    .tensors = kOlmoHybridTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
