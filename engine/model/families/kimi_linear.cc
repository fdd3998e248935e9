// Kimi Linear: the gated delta rule with a decay for each number of a key in most layers (Kimi
// delta attention), DeepSeek V3's latent attention without positions in the others, and its experts
// behind the first layers. Source: models/kimi_linear in `transformers`, and what the published
// files call their tensors.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/delta_rule_fields.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/latent_fields.h"
#include "engine/model/state_fields.h"

namespace tgi {
namespace {

constexpr const char* kPublishedLinear = "linear_attn_config";

// Published files say the sizes of these layers, and which they are, in an object of their own.
constexpr auto kLinearFields = std::to_array<KnownField>({
    read("head_dim"),
    read("num_heads"),
    read("short_conv_kernel_size"),
    read("full_attn_layers"),
    read("kda_layers"),
});

// Layers are counted from 1 there.
void take_layers(const JsonReader& linear, const char* key, const char* kind, Json& types) {
  for (const int32_t number : read_token_ids(linear, key)) {
    if (number < 1 || static_cast<size_t>(number) > types.size()) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: expected numbers of layers from 1 to {}, got {}",
                              linear.path_of(key), types.size(), number));
    }
    types[static_cast<size_t>(number) - 1] = kind;
  }
}

Json with_linear_fields(const JsonReader& given) {
  Json out = given.json();
  if (!given.has(kPublishedLinear)) return out;
  const JsonReader linear = given.object(kPublishedLinear);
  refuse_unknown_fields(linear, kLinearFields, {}, kPublishedLinear);
  const auto take = [&](const char* name, const char* from) {
    if (linear.has(from)) out[name] = linear.json().at(from);
  };
  take("linear_head_dim", "head_dim");
  take("linear_num_heads", "num_heads");
  take("linear_conv_kernel_dim", "short_conv_kernel_size");
  if (given.has("layer_types") || !linear.has("full_attn_layers") || !linear.has("kda_layers")) {
    return out;
  }
  Json types(static_cast<size_t>(read_size(given, "num_hidden_layers", 27, kMaxLayers)), nullptr);
  take_layers(linear, "full_attn_layers", "full_attention", types);
  take_layers(linear, "kda_layers", "linear_attention", types);
  for (size_t i = 0; i < types.size(); ++i) {
    if (!types[i].is_null()) continue;
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: neither full_attn_layers nor kda_layers names layer {} of {}",
                            given.path_of(kPublishedLinear), i + 1, types.size()));
  }
  out["layer_types"] = std::move(types);
  return out;
}

ModelConfig read_kimi_linear(const JsonReader& given) {
  const Json json = with_linear_fields(given);
  const JsonReader config(json, "");
  ModelConfig model =
      read_decoder_config(config, latent_decoder_fields({.default_vocab_size = 163840,
                                                         .default_hidden_size = 2304,
                                                         .default_num_layers = 27,
                                                         .default_intermediate = 9216,
                                                         .default_max_positions = 1048576,
                                                         .default_norm_eps = 1e-5,
                                                         .default_bos = 163584,
                                                         .default_eos = 163586}));
  read_latent_attention(config, {.default_query_rank = 0, .scales_scores = false, .rotates = false},
                        {}, model);
  read_channel_delta(config, {}, model);
  // Both of a row as short as a head.
  model.state.gate_rank = model.state.step_rank = model.state.head_dim;
  if (config.has("layer_types")) {
    read_mixer_types(config, "layer_types",
                     {.attention = "full_attention", .state = "linear_attention"}, model);
  } else {
    use_attention_every(4, 0, model);
    model.layers.front().has_attention = false;
    model.layers.front().has_state = true;
  }
  read_deepseek_experts(config,
                        {.default_num_experts = 256,
                         .default_top_k = 8,
                         .default_intermediate = 1024,
                         .default_scale = 2.446},
                        model);
  if (!read_mlp_layer_types(config, model)) read_first_sparse_layer(config, 1, model);
  return model;
}

constexpr std::string_view kNoPositions = "nothing tells positions apart but the order of states";

constexpr auto kKimiLinearFields = join_fields(
    std::to_array<KnownField>({
        read_or_null(kPublishedLinear),
        read_or_null("layer_types"),
        read_or_null("mlp_layer_types"),
        read("linear_head_dim"),
        read("linear_num_heads"),
        read("linear_conv_kernel_dim"),
        kSiluOfConvolutions,
        harmless("rope_theta", kNoPositions),
        harmless("rope_scaling", kNoPositions),
        harmless("rope_parameters", kNoPositions),
        harmless("partial_rotary_factor", kNoPositions),
        harmless("original_max_position_embeddings", kNoPositions),
        harmless_if("mla_use_nope", "[true]", kNoPositions),
        harmless_if("moe_router_activation_func", R"(["sigmoid"])", "scores are sigmoids"),
        harmless_if("use_grouped_topk", "[true]", "num_expert_group counts the groups"),
        harmless("num_nextn_predict_layers", kOnlyDrafts),
        harmless("ep_size", "says how training dealt out the experts"),
    }),
    kLatentFields,
    kDecoderFields,
    kDeepSeekExpertFields);

constexpr auto kKimiLinearAliases =
    std::to_array<FieldAlias>({{"model_max_length", "max_position_embeddings"},
                               {"moe_renormalize", "norm_topk_prob"},
                               {"num_expert_group", "n_group"},
                               {"num_experts", "n_routed_experts"},
                               {"num_local_experts", "n_routed_experts"},
                               {"num_experts_per_token", "num_experts_per_tok"},
                               {"num_shared_experts", "n_shared_experts"}});

constexpr auto kKimiLinearNames = std::to_array<std::string_view>({"KimiLinearForCausalLM"});
constexpr auto kKimiLinearTypes = std::to_array<std::string_view>({"kimi_linear"});

constexpr auto kKimiLinearTensors = join_tensors(
    kLlamaOuterTensors,
    kLlamaNormTensors,
    kLatentAttentionTensors,
    std::to_array<TensorSpec>({
        {Role::kStateIn, "model.layers.{layer}.self_attn.q_proj.weight", Dim::kStateKeys,
         Dim::kHidden},
        {Role::kStateKeyIn, "model.layers.{layer}.self_attn.k_proj.weight", Dim::kStateKeys,
         Dim::kHidden},
        {Role::kStateValueIn, "model.layers.{layer}.self_attn.v_proj.weight", Dim::kStateChannels,
         Dim::kHidden},
        {Role::kStateGateIn, "model.layers.{layer}.self_attn.g_a_proj.weight", Dim::kStateGateRank,
         Dim::kHidden},
        {Role::kStateGateUp, "model.layers.{layer}.self_attn.g_b_proj.weight", Dim::kStateChannels,
         Dim::kStateGateRank},
        {Role::kStateSecondIn, "model.layers.{layer}.self_attn.b_proj.weight", Dim::kStateHeads,
         Dim::kHidden},
        {Role::kStateThirdIn, "model.layers.{layer}.self_attn.f_a_proj.weight", Dim::kStepRank,
         Dim::kHidden},
        {Role::kStep, "model.layers.{layer}.self_attn.f_b_proj.weight", Dim::kStateSteps,
         Dim::kStepRank},
        {Role::kConv, "model.layers.{layer}.self_attn.{qkv}_conv1d.weight", Dim::kOne,
         Dim::kConvWeights},
        {Role::kStateStepBias, "model.layers.{layer}.self_attn.dt_bias", Dim::kOne,
         Dim::kStateSteps},
        {.role = Role::kDecay,
         .name = "model.layers.{layer}.self_attn.A_log",
         .rows = Dim::kOne,
         .cols = Dim::kStateHeads,
         .amid_ones = true},
        {Role::kStateNorm, "model.layers.{layer}.self_attn.o_norm.weight", Dim::kOne,
         Dim::kStateHeadDim},
        {Role::kStateOut, "model.layers.{layer}.self_attn.o_proj.weight", Dim::kHidden,
         Dim::kStateChannels},
        {Role::kChoiceBias, "model.layers.{layer}.block_sparse_moe.gate.e_score_correction_bias",
         Dim::kOne, Dim::kExperts, Split::kNone, has_choice_bias},
    }),
    kLlamaMlpTensors,
    kMixtralExpertTensors,
    kMixtralSharedExpertsTensors);

// As `transformers` calls them within.
constexpr auto kKimiLinearRenames = std::to_array<TensorRename>({
    {".mlp.shared_experts.", ".block_sparse_moe.shared_experts."},
    {".self_attn.forget_gate.", ".self_attn."},
});

}  // namespace

extern const Architecture kKimiLinear;
constexpr Architecture kKimiLinear = {
    .names = kKimiLinearNames,
    .model_types = kKimiLinearTypes,
    .prefix = "model.",
    .read_config = read_kimi_linear,
    .fields = kKimiLinearFields,
    .aliases = kKimiLinearAliases,
    .tensors = kKimiLinearTensors,
    .renames = kKimiLinearRenames,
    .ignored = kRotaryTables,
    .ignores_layer_after_last = true,
};

}  // namespace tgi
