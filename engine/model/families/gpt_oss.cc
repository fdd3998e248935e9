// gpt-oss: experts with biases and a bent gate in every layer, sliding windows in every other one,
// and attention with a sink for each head. The matrices of a layer's experts are one tensor, with
// gate and up by turns. And the privacy filter, whose tokens see what is near on both sides, with
// pairs of a head rotated and gate before up.
// Sources: models/gpt_oss and models/openai_privacy_filter in `transformers`.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

// A config without any is taken to have this.
Json with_default_gpt_oss_rope(const Json& config) {
  return with_default_rope(config, "rope_scaling",
                           {{"rope_type", "yarn"},
                            {"factor", 32.0},
                            {"beta_fast", 32.0},
                            {"beta_slow", 1.0},
                            {"truncate", false},
                            {"original_max_position_embeddings", 4096}});
}

// Published configs don't say it, and all their plain tensors are of this type.
void default_to_bf16(const JsonReader& config, ModelConfig& model) {
  if (!config.has("dtype") && !config.has("torch_dtype")) model.checkpoint_dtype = DType::kBF16;
}

GateLimits read_limits(const JsonReader& config, const ModelConfig& model) {
  if (model.activation != Activation::kSilu) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: this family's gate is silu, got {}", config.path_of("hidden_act"),
                            config.json().at("hidden_act").dump()));
  }
  return read_swiglu_limits(config);
}

// The softmax over the chosen is that over all, divided by their sum.
void read_gpt_oss_experts(const JsonReader& config, ModelConfig& model) {
  read_experts(config,
               {.num_experts = "num_local_experts",
                .default_num_experts = 128,
                .default_top_k = 4,
                .normalises = true},
               model);
  use_experts_in_all_layers(model);
}

ModelConfig read_gpt_oss(const JsonReader& given) {
  const Json json = with_default_gpt_oss_rope(given.json());
  const JsonReader config(json, "");
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 201088,
                                                   .default_hidden_size = 2880,
                                                   .default_num_layers = 36,
                                                   .default_num_heads = 64,
                                                   .default_num_kv_heads = 8,
                                                   .default_head_dim = 64,
                                                   .default_intermediate = 2880,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", true);
  default_to_bf16(config, model);
  model.gate_limits = read_limits(config, model);
  read_windows(config, {.default_window = 128, .default_pattern = 2}, model);
  read_rope(config, model, {.default_theta = 150000.0});
  read_gpt_oss_experts(config, model);
  return model;
}

ModelConfig read_privacy_filter(const JsonReader& given) {
  Json json = with_default_gpt_oss_rope(given.json());
  json.erase("hidden_act");  // see kPrivacyFilterFields
  const JsonReader config(json, "");
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 200064,
                                                   .default_hidden_size = 640,
                                                   .default_num_layers = 8,
                                                   .default_num_heads = 14,
                                                   .default_num_kv_heads = 2,
                                                   .default_head_dim = 64,
                                                   .default_intermediate = 640,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.is_causal = false;
  model.attention_bias = config.boolean_or("attention_bias", true);
  default_to_bf16(config, model);
  model.gate_limits = read_limits(config, model);
  // So many tokens to each side, and itself.
  const int32_t window = read_size(config, "sliding_window", 128, kMaxPositions - 1) + 1;
  for (LayerPlan& layer : model.layers) layer.sliding_window = window;
  read_rope(config, model, {.default_theta = 150000.0, .interleaved = true});
  read_gpt_oss_experts(config, model);
  return model;
}

constexpr auto kGptOssBlockFields = std::to_array<KnownField>({
    read_or_null("attention_bias"),
    read("num_local_experts"),
    read("num_experts_per_tok"),
    read("swiglu_limit"),
    read("swiglu_alpha"),
    harmless("initial_context_length", "the scaling of rope says how long it was"),
    harmless("router_aux_loss_coef", kTrainsRouter),
    harmless("output_router_logits", kTrainsRouter),
    harmless_if("mlp_bias", "[true]", "experts and their router have biases"),
});

constexpr auto kPrivacyFilterFields = join_fields(
    std::to_array<KnownField>({
        harmless("hidden_act", "gates are silu, whatever it says"),
        harmless("tie_word_embeddings", "is of a head that draws tokens, which it has not"),
        harmless("classifier_dropout", kOnlyTraining),
        harmless("bidirectional_context", "all tokens see what is near on both sides"),
        harmless("is_causal", "all tokens see what is near on both sides"),
        read("sliding_window"),
    }),
    kGptOssBlockFields,
    kDecoderFields);

constexpr auto kGptOssFields = join_fields(kDecoderFields,
                                           std::to_array<KnownField>({
                                               read_or_null("sliding_window"),
                                               read_or_null("layer_types"),
                                           }),
                                           kGptOssBlockFields);

constexpr auto kGptOssAliases = std::to_array<FieldAlias>({
    {"experts_per_token", "num_experts_per_tok"},
});

constexpr auto kGptOssNames = std::to_array<std::string_view>({"GptOssForCausalLM"});
constexpr auto kGptOssTypes = std::to_array<std::string_view>({"gpt_oss"});

// Columns of gate_up_proj are outputs: gate and up of the first, of the second, and so on.
constexpr TensorSpec gpt_oss_gate_or_up(Role weight, int64_t turn) {
  return {.role = weight,
          .name = "model.layers.{layer}.mlp.experts.gate_up_proj",
          .rows = Dim::kExpertIntermediate,
          .cols = Dim::kHidden,
          .split = Split::kRows,
          .transposed = true,
          .stacked = true,
          .turns = {.index = turn, .count = 2}};
}
constexpr TensorSpec gate_or_up_bias(Role bias, int64_t turn) {
  return {.role = bias,
          .name = "model.layers.{layer}.mlp.experts.gate_up_proj_bias",
          .rows = Dim::kOne,
          .cols = Dim::kExpertIntermediate,
          .split = Split::kRows,
          .stacked = true,
          .turns = {.index = turn, .count = 2}};
}

constexpr auto kGateAndUpByTurns = std::to_array<TensorSpec>({
    gpt_oss_gate_or_up(Role::kExpertGate, 0),
    gpt_oss_gate_or_up(Role::kExpertUp, 1),
    gate_or_up_bias(Role::kExpertGateBias, 0),
    gate_or_up_bias(Role::kExpertUpBias, 1),
});

constexpr auto kGateBeforeUp = std::to_array<TensorSpec>({
    {.role = Role::kExpertGateUp,
     .name = "model.layers.{layer}.mlp.experts.gate_up_proj",
     .rows = Dim::kExpertGateUp,
     .cols = Dim::kHidden,
     .split = Split::kRows,
     .transposed = true,
     .stacked = true},
    {.role = Role::kExpertGateUpBias,
     .name = "model.layers.{layer}.mlp.experts.gate_up_proj_bias",
     .rows = Dim::kOne,
     .cols = Dim::kExpertGateUp,
     .split = Split::kRows,
     .stacked = true},
});

constexpr auto kExpertTensorsWithBiases = std::to_array<TensorSpec>({
    {Role::kRouter, "model.layers.{layer}.mlp.router.weight", Dim::kExperts, Dim::kHidden},
    {Role::kRouterBias, "model.layers.{layer}.mlp.router.bias", Dim::kOne, Dim::kExperts},
    {.role = Role::kExpertDown,
     .name = "model.layers.{layer}.mlp.experts.down_proj",
     .rows = Dim::kHidden,
     .cols = Dim::kExpertIntermediate,
     .split = Split::kColumns,
     .transposed = true,
     .stacked = true},
    {.role = Role::kExpertDownBias,
     .name = "model.layers.{layer}.mlp.experts.down_proj_bias",
     .rows = Dim::kOne,
     .cols = Dim::kHidden,
     .split = Split::kColumns,
     .stacked = true},
});

constexpr auto kGptOssCommonTensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 kLlamaAttentionTensors,
                 kLlamaQkvBiasTensors,
                 kLlamaOBiasTensors,
                 std::to_array<TensorSpec>({
                     {Role::kSinks, "model.layers.{layer}.self_attn.sinks", Dim::kOne, Dim::kHeads,
                      Split::kRows},
                 }),
                 kExpertTensorsWithBiases);
constexpr auto kGptOssTensors = join_tensors(kGptOssCommonTensors, kGateAndUpByTurns);
constexpr auto kPrivacyFilterTensors = join_tensors(kGptOssCommonTensors, kGateBeforeUp);

constexpr auto kPrivacyFilterNames = std::to_array<std::string_view>({"OpenAIPrivacyFilterModel"});
constexpr auto kPrivacyFilterTypes = std::to_array<std::string_view>({"openai_privacy_filter"});

}  // namespace

extern const Architecture kGptOss;
constexpr Architecture kGptOss = {
    .names = kGptOssNames,
    .model_types = kGptOssTypes,
    .prefix = "model.",
    .read_config = read_gpt_oss,
    .fields = kGptOssFields,
    .aliases = kGptOssAliases,
    .tensors = kGptOssTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kPrivacyFilter;
constexpr Architecture kPrivacyFilter = {
    .names = kPrivacyFilterNames,
    .model_types = kPrivacyFilterTypes,
    .prefix = "model.",
    .read_config = read_privacy_filter,
    .fields = kPrivacyFilterFields,
    .aliases = kGptOssAliases,
    .tensors = kPrivacyFilterTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
