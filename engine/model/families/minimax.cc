// MiniMax Text 01: lightning attention, whose heads forget at rates of their own, among layers of
// attention, and Mixtral's experts behind both; the stream goes on from what a norm gives, times a
// factor. Source: models/minimax in `transformers`; https://arxiv.org/abs/2501.08313.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"
#include "engine/model/state_fields.h"

namespace tgi {
namespace {

float read_factor(const JsonReader& config, std::string_view key) {
  const auto factor = static_cast<float>(config.number_or(key, 1.0));
  if (std::isfinite(factor)) return factor;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected a number that a float holds, got {}", config.path_of(key),
                          config.json().at(std::string(key)).dump()));
}

ResidualFactors read_residual_factors(const JsonReader& config,
                                      std::string_view stream,
                                      std::string_view branch) {
  return {.stream = read_factor(config, stream), .branch = read_factor(config, branch)};
}

void read_minimax_layers(const JsonReader& config, ModelConfig& model) {
  if (config.has("layer_types")) {
    read_mixer_types(config, "layer_types",
                     {.attention = "full_attention", .state = "linear_attention"}, model);
  } else {
    use_attention_every(2, 0, model);
  }
  const ResidualFactors attention =
      read_residual_factors(config, "full_attn_alpha_factor", "full_attn_beta_factor");
  const ResidualFactors lightning =
      read_residual_factors(config, "linear_attn_alpha_factor", "linear_attn_beta_factor");
  const ResidualFactors mlp = read_residual_factors(config, "mlp_alpha_factor", "mlp_beta_factor");
  const int32_t window =
      config.has("sliding_window") ? read_size(config, "sliding_window", 0, kMaxPositions) : 0;
  for (LayerPlan& layer : model.layers) {
    layer.mixer_factors = layer.has_attention ? attention : lightning;
    layer.mlp_factors = mlp;
    if (layer.has_attention) layer.sliding_window = window;
  }
}

// As many heads as attention has, with keys and values of their own.
void use_lightning(const JsonReader& config, ModelConfig& model) {
  StateConfig& state = model.state;
  state.kind = StateKind::kLightning;
  state.num_heads = state.num_groups = model.num_heads;
  state.head_dim = state.state_size = model.head_dim;
  state.gate = GateKind::kSigmoid;
  state.has_norm = true;
  state.norm_eps = 1e-6F;  // whatever that of the other norms is
  check_state_size(config, "num_attention_heads", model);
}

ModelConfig read_minimax(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_num_kv_heads = 8,
                                                   .default_intermediate = 14336,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5});
  model.residual_after_norm = true;
  read_minimax_layers(config, model);
  use_lightning(config, model);
  read_rope(config, model, {.default_theta = 1e6});
  read_experts(config, kMixtralExperts, model);
  use_experts_in_all_layers(model);
  return model;
}

constexpr auto kMinimaxFields =
    join_fields(kDecoderFields,
                kMixtralExpertFields,
                std::to_array<KnownField>({
                    read_or_null("sliding_window"),
                    read_or_null("layer_types"),
                    read("full_attn_alpha_factor"),
                    read("full_attn_beta_factor"),
                    read("linear_attn_alpha_factor"),
                    read("linear_attn_beta_factor"),
                    read("mlp_alpha_factor"),
                    read("mlp_beta_factor"),
                    harmless("block_size", kSameSums),
                    harmless_if("attention_bias", "[false]", "there are no biases"),
                    harmless_if("mlp_bias", "[false]", "there are no biases"),
                }));

constexpr auto kMinimaxAliases = std::to_array<FieldAlias>({{"num_experts", "num_local_experts"}});

constexpr auto kMinimaxNames = std::to_array<std::string_view>({"MiniMaxForCausalLM"});
constexpr auto kMinimaxTypes = std::to_array<std::string_view>({"minimax"});

constexpr auto kMinimaxTensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 kLlamaAttentionTensors,
                 std::to_array<TensorSpec>({
                     {Role::kStateIn, "model.layers.{layer}.self_attn.qkv_proj.weight",
                      Dim::kLightningIn, Dim::kHidden, Split::kRows},
                     {Role::kStateGateIn, "model.layers.{layer}.self_attn.output_gate.weight",
                      Dim::kStateChannels, Dim::kHidden},
                     {.role = Role::kDecayRate,
                      .name = "model.layers.{layer}.self_attn.slope_rate",
                      .rows = Dim::kOne,
                      .cols = Dim::kStateHeads,
                      .before_ones = true},
                     {Role::kStateNorm, "model.layers.{layer}.self_attn.norm.weight", Dim::kOne,
                      Dim::kStateChannels},
                     {Role::kStateOut, "model.layers.{layer}.self_attn.out_proj.weight",
                      Dim::kHidden, Dim::kStateChannels},
                 }),
                 kMixtralExpertTensors);

// What the rates make of blocks of tokens.
constexpr auto kMinimaxIgnored = std::to_array<std::string_view>(
    {".rotary_emb.inv_freq", ".query_decay", ".key_decay", ".diagonal_decay"});

}  // namespace

extern const Architecture kMinimax;
constexpr Architecture kMinimax = {
    .names = kMinimaxNames,
    .model_types = kMinimaxTypes,
    .prefix = "model.",
    .read_config = read_minimax,
    .fields = kMinimaxFields,
    .aliases = kMinimaxAliases,
    .tensors = kMinimaxTensors,
    .ignored = kMinimaxIgnored,
};

}  // namespace tgi
