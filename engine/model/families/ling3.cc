// Ling 3: the gated delta rule with a decay for each number of a key in most layers (Kimi delta
// attention), DeepSeek V3's latent attention with a gate of each head in the last one of every
// group, and its experts behind the first layers. Source: models/bailing_hybrid in `transformers`,
// and what the published files call their tensors.
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
#include "engine/model/families/ling_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/latent_fields.h"
#include "engine/model/state_fields.h"

namespace tgi {
namespace {

// What is kept of a state after a token: by a sigmoid that is bounded, or by a softplus.
float read_floor(const JsonReader& config) {
  if (!config.boolean_or("kda_safe_gate", true)) return 0.0F;
  const double floor = config.number_or("kda_lower_bound", -5.0);
  if (floor < 0.0 && floor > -1e6) return static_cast<float>(floor);
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected a logarithm below 0 of the least that is kept, got {}",
                          config.path_of("kda_lower_bound"), floor));
}

// transformers writes the sizes of these layers under names of their own, and a head_dim of its
// latent attention; published files have one head_dim for these layers.
Json with_linear_sizes(const Json& given) {
  Json out = given;
  const auto take = [&](const char* name, const char* from) {
    if (!out.contains(name) && out.contains(from)) out[name] = out[from];
  };
  take("linear_head_dim", "head_dim");
  take("linear_num_heads", "num_attention_heads");
  take("linear_conv_kernel_dim", "short_conv_kernel_size");
  return out;
}

ModelConfig read_ling3(const JsonReader& given) {
  const Json json = with_linear_sizes(given.json());
  const JsonReader config(json, "");
  ModelConfig model =
      read_decoder_config(config, latent_decoder_fields({.default_vocab_size = 157184,
                                                         .default_hidden_size = 2560,
                                                         .default_num_layers = 42,
                                                         .default_intermediate = 6144,
                                                         .default_max_positions = 262144,
                                                         .default_bos = -1,
                                                         .default_eos = 156895}));
  read_latent_attention(config, {.default_query_rank = 0},
                        {.default_theta = 6e6, .interleaved = true}, model);
  model.has_output_gate = model.gates_heads = true;
  model.output_gate = GateKind::kSigmoid;
  read_channel_delta(config, {.num_heads = model.num_heads}, model);
  model.state.floor = read_floor(config);
  if (config.has("layer_types")) {
    read_mixer_types(config, "layer_types",
                     {.attention = "full_attention", .state = "linear_attention"}, model);
  } else {
    const int32_t group = read_size(config, "layer_group_size", 6, kMaxLayers);
    use_attention_every(group, group - 1, model);
  }
  read_deepseek_experts(config,
                        {.default_num_experts = 512,
                         .default_top_k = 8,
                         .default_intermediate = 768,
                         .default_num_groups = 8,
                         .default_top_groups = 4,
                         .default_scale = 2.5},
                        model);
  if (!read_mlp_layer_types(config, model)) read_first_sparse_layer(config, 2, model);
  return model;
}

constexpr auto kLing3Fields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("layer_types"),
                    read_or_null("mlp_layer_types"),
                    read("layer_group_size"),
                    read("head_dim"),
                    read("linear_head_dim"),
                    read("linear_num_heads"),
                    read("linear_conv_kernel_dim"),
                    read("short_conv_kernel_size"),
                    kSiluOfConvolutions,
                    read("kda_safe_gate"),
                    read("kda_lower_bound"),
                    harmless_if("attention_bias", "[false]", "there are no biases of attention"),
                    harmless_if("rope_interleave", "[true]", "pairs of neighbours are rotated"),
                    harmless("mtp_loss_scaling_factor", kOnlyTraining),
                }),
                kLingFields,
                kLatentFields,
                kDecoderFields,
                kDeepSeekExpertFields);

constexpr auto kLing3Aliases =
    std::to_array<FieldAlias>({{"model_max_length", "max_position_embeddings"},
                               {"moe_renormalize", "norm_topk_prob"},
                               {"num_expert_group", "n_group"},
                               {"num_experts", "n_routed_experts"},
                               {"num_local_experts", "n_routed_experts"},
                               {"num_experts_per_token", "num_experts_per_tok"},
                               {"num_shared_experts", "n_shared_experts"},
                               {"num_mtp_layers", "num_nextn_predict_layers"}});

constexpr auto kLing3Names = std::to_array<std::string_view>({"BailingHybridForCausalLM"});
constexpr auto kLing3Types = std::to_array<std::string_view>({"bailing_hybrid"});

constexpr auto kLing3Tensors = join_tensors(
    std::to_array<TensorSpec>({
        {Role::kTokenEmbedding, "model.word_embeddings.weight", Dim::kVocab, Dim::kHidden},
        {Role::kFinalNorm, "model.norm.weight", Dim::kOne, Dim::kHidden},
        {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
        {Role::kQ, "model.layers.{layer}.attention.q_proj.weight", Dim::kQ, Dim::kHidden,
         Split::kRows, has_no_short_queries},
        {Role::kQueryDown, "model.layers.{layer}.attention.q_a_proj.weight", Dim::kQueryRank,
         Dim::kHidden, Split::kNone, has_short_queries},
        {Role::kQueryDownNorm, "model.layers.{layer}.attention.q_a_layernorm.weight", Dim::kOne,
         Dim::kQueryRank, Split::kNone, has_short_queries},
        {Role::kQ, "model.layers.{layer}.attention.q_b_proj.weight", Dim::kQ, Dim::kQueryRank,
         Split::kRows, has_short_queries},
        {Role::kLatentDown, "model.layers.{layer}.attention.kv_a_proj_with_mqa.weight",
         Dim::kLatentKey, Dim::kHidden},
        {Role::kLatentNorm, "model.layers.{layer}.attention.kv_a_layernorm.weight", Dim::kOne,
         Dim::kLatent},
        {Role::kLatentUp, "model.layers.{layer}.attention.kv_b_proj.weight", Dim::kLatentUp,
         Dim::kLatent, Split::kRows},
        {Role::kLatentGate, "model.layers.{layer}.attention.g_proj.weight", Dim::kHeads,
         Dim::kHidden, Split::kRows},
        {Role::kO, "model.layers.{layer}.attention.dense.weight", Dim::kHidden, Dim::kHeadValues,
         Split::kColumns},
        {Role::kStateIn, "model.layers.{layer}.attention.q_proj.weight", Dim::kStateKeys,
         Dim::kHidden},
        {Role::kStateKeyIn, "model.layers.{layer}.attention.k_proj.weight", Dim::kStateKeys,
         Dim::kHidden},
        {Role::kStateValueIn, "model.layers.{layer}.attention.v_proj.weight", Dim::kStateChannels,
         Dim::kHidden},
        {Role::kStateGateIn, "model.layers.{layer}.attention.g_proj.weight", Dim::kStateChannels,
         Dim::kHidden},
        {Role::kStateSecondIn, "model.layers.{layer}.attention.b_proj.weight", Dim::kStateHeads,
         Dim::kHidden},
        {Role::kStateThirdIn, "model.layers.{layer}.attention.f_proj.weight", Dim::kStateSteps,
         Dim::kHidden},
        {Role::kConv, "model.layers.{layer}.attention.{qkv}_conv1d.weight", Dim::kOne,
         Dim::kConvWeights},
        {Role::kStateStepBias, "model.layers.{layer}.attention.dt_bias", Dim::kOne,
         Dim::kStateSteps},
        {Role::kDecay, "model.layers.{layer}.attention.A_log", Dim::kOne, Dim::kStateHeads},
        {Role::kStateNorm, "model.layers.{layer}.attention.o_norm.weight", Dim::kOne,
         Dim::kStateHeadDim},
        {Role::kStateOut, "model.layers.{layer}.attention.dense.weight", Dim::kHidden,
         Dim::kStateChannels},
        {Role::kChoiceBias, "model.layers.{layer}.mlp.gate.expert_bias", Dim::kOne, Dim::kExperts,
         Split::kNone, has_choice_bias},
    }),
    kLlamaNormTensors,
    kLlamaMlpTensors,
    kExpertTensors,
    kSharedExpertsTensors);

// As `transformers` calls them within.
constexpr auto kLing3Renames = std::to_array<TensorRename>({
    {"embed_tokens.", "word_embeddings."},
    {".self_attn.forget_gate.", ".attention."},
    {".self_attn.o_proj.", ".attention.dense."},
    {".self_attn.", ".attention."},
});

}  // namespace

extern const Architecture kLing3;
constexpr Architecture kLing3 = {
    .names = kLing3Names,
    .model_types = kLing3Types,
    .prefix = "model.",
    .read_config = read_ling3,
    .fields = kLing3Fields,
    .aliases = kLing3Aliases,
    .tensors = kLing3Tensors,
    .renames = kLing3Renames,
    .ignored = kRotaryTables,
    .ignores_layer_after_last = true,
};

}  // namespace tgi
