// Jamba: Mamba in most layers, attention without positions in the others, experts in every other
// one. Source: models/jamba in `transformers`; https://arxiv.org/abs/2403.19887.
#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/state_fields.h"
#include "engine/model/state_tensors.h"

namespace tgi {
namespace {

// Layers offset, offset + period and so on.
struct Stride {
  int32_t period;
  int32_t offset;
};

Stride read_stride(const JsonReader& config,
                   std::string_view period_name,
                   int64_t period,
                   std::string_view offset_name,
                   int64_t offset) {
  Stride out{.period = read_size(config, period_name, period, kMaxLayers), .offset = 0};
  const int64_t said = config.integer_or(offset_name, offset);
  if (said < 0 || said >= out.period) {
    throw Error(Code::kInvalidArgument,
                config.path_of(offset_name) + ": expected 0 to " + std::to_string(out.period - 1) +
                    ", as " + std::string(period_name) + " is " + std::to_string(out.period) +
                    ", got " + std::to_string(said));
  }
  out.offset = static_cast<int32_t>(said);
  return out;
}

void read_jamba_layers(const JsonReader& config, ModelConfig& model) {
  const Stride attention = read_stride(config, "attn_layer_period", 8, "attn_layer_offset", 4);
  use_attention_every(attention.period, attention.offset, model);
  const Stride experts = read_stride(config, "expert_layer_period", 2, "expert_layer_offset", 1);
  if (model.experts.num_experts == 1) {  // the MLP itself
    model.experts = {};
    return;
  }
  for (int32_t i = experts.offset; i < model.num_layers; i += experts.period) {
    model.layers[static_cast<size_t>(i)].mlp = MlpKind::kExperts;
  }
}

ModelConfig read_jamba(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.head_dim = "",
                                                   .default_vocab_size = 65536,
                                                   .default_num_kv_heads = 8,
                                                   .default_intermediate = 14336,
                                                   .default_max_positions = 262144});
  read_mamba(config,
             {.expand = "mamba_expand",
              .state_size = "mamba_d_state",
              .conv_kernel = "mamba_d_conv",
              .step_rank = "mamba_dt_rank",
              .conv_bias = "mamba_conv_bias",
              .bias = "mamba_proj_bias"},
             model);
  model.state.norms_parts = true;
  model.state.norm_eps = model.norm_eps;
  read_experts(config, {.default_num_experts = 16, .default_top_k = 2}, model);
  read_jamba_layers(config, model);
  check_mixer_list(config, "layer_types", model);
  check_mixer_list(config, "layers_block_type", model);
  Json rest = config.json();
  rest.erase("layer_types");  // is of what is checked above
  refuse_windows(JsonReader(rest, ""), model);
  return model;
}

constexpr auto kJambaFields = join_fields(
    std::to_array<KnownField>({
        read("vocab_size"),
        read("hidden_size"),
        read("intermediate_size"),
        read("num_hidden_layers"),
        read("num_attention_heads"),
        read_or_null("num_key_value_heads"),
        kSiluOfConvolutions,
        read("max_position_embeddings"),
        read("rms_norm_eps"),
        read_or_null("tie_word_embeddings"),
        read("num_experts"),
        read("num_experts_per_tok"),
        read("attn_layer_period"),
        read("attn_layer_offset"),
        read("expert_layer_period"),
        read("expert_layer_offset"),
        read("mamba_d_state"),
        read("mamba_d_conv"),
        read("mamba_expand"),
        read("mamba_dt_rank"),
        read("mamba_conv_bias"),
        read("mamba_proj_bias"),
        read_or_null("sliding_window"),
        harmless("use_mambapy", "says which kernel computes the same"),
        harmless("use_associative_scan", "says which kernel computes the same"),
        read_or_null("layer_types"),
        read_or_null("layers_block_type"),
        harmless("router_aux_loss_coef", kTrainsRouter),
        harmless("output_router_logits", kTrainsRouter),
        harmless_if("mamba_inner_layernorms", "[true]", "what the scan reads is normed"),
    }),
    kMambaFields);

constexpr auto kJambaNames = std::to_array<std::string_view>({"JambaForCausalLM"});
constexpr auto kJambaTypes = std::to_array<std::string_view>({"jamba"});

constexpr auto kJambaTensors = join_tensors(
    kLlamaEmbeddingTensors,
    std::to_array<TensorSpec>({
        {Role::kFinalNorm, "model.final_layernorm.weight", Dim::kOne, Dim::kHidden},
        {Role::kMlpNorm, "model.layers.{layer}.pre_ff_layernorm.weight", Dim::kOne, Dim::kHidden},
        {Role::kStateIn, "model.layers.{layer}.mamba.in_proj.weight", Dim::kStateIn, Dim::kHidden},
        {Role::kStateInBias, "model.layers.{layer}.mamba.in_proj.bias", Dim::kOne, Dim::kStateIn,
         Split::kNone, has_state_in_bias},
        {Role::kConv, "model.layers.{layer}.mamba.conv1d.weight", Dim::kOne, Dim::kConvWeights},
        {Role::kConvBias, "model.layers.{layer}.mamba.conv1d.bias", Dim::kOne, Dim::kConvChannels,
         Split::kNone, has_conv_bias},
        {Role::kStateParts, "model.layers.{layer}.mamba.x_proj.weight", Dim::kStateParts,
         Dim::kStateChannels},
        {Role::kStepNorm, "model.layers.{layer}.mamba.dt_layernorm.weight", Dim::kOne,
         Dim::kStepRank},
        {Role::kInputNorm, "model.layers.{layer}.mamba.b_layernorm.weight", Dim::kOne,
         Dim::kStateSize},
        {Role::kOutputNorm, "model.layers.{layer}.mamba.c_layernorm.weight", Dim::kOne,
         Dim::kStateSize},
        {Role::kStep, "model.layers.{layer}.mamba.dt_proj.weight", Dim::kStateChannels,
         Dim::kStepRank},
        {Role::kStepBias, "model.layers.{layer}.mamba.dt_proj.bias", Dim::kOne,
         Dim::kStateChannels},
        {Role::kDecay, "model.layers.{layer}.mamba.A_log", Dim::kOne, Dim::kChannelDecay},
        {Role::kSkip, "model.layers.{layer}.mamba.D", Dim::kOne, Dim::kStateChannels},
        {Role::kStateOut, "model.layers.{layer}.mamba.out_proj.weight", Dim::kHidden,
         Dim::kStateChannels},
        {Role::kStateOutBias, "model.layers.{layer}.mamba.out_proj.bias", Dim::kOne, Dim::kHidden,
         Split::kNone, has_state_out_bias},
        {Role::kRouter, "model.layers.{layer}.feed_forward.router.weight", Dim::kExperts,
         Dim::kHidden, Split::kNone, has_experts},
        {Role::kExpertGate, "model.layers.{layer}.feed_forward.experts.{expert}.gate_proj.weight",
         Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
        {Role::kExpertUp, "model.layers.{layer}.feed_forward.experts.{expert}.up_proj.weight",
         Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
        {Role::kExpertDown, "model.layers.{layer}.feed_forward.experts.{expert}.down_proj.weight",
         Dim::kHidden, Dim::kExpertIntermediate, Split::kColumns, has_experts},
    }),
    kOneNormTensors,
    kLlamaAttentionTensors,
    kFeedForwardTensors);

}  // namespace

extern const Architecture kJamba;
constexpr Architecture kJamba = {
    .names = kJambaNames,
    .model_types = kJambaTypes,
    .prefix = "model.",
    .read_config = read_jamba,
    .fields = kJambaFields,
    .tensors = kJambaTensors,
    .ignored = {},
};

}  // namespace tgi
