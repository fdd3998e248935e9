// Qwen3-Next: gated delta rule in most layers, attention with a gate of its output in the others,
// Qwen 2's experts. Source: models/qwen3_next in `transformers`.
#include <array>
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

void read_delta_rule(const JsonReader& config, ModelConfig& model) {
  StateConfig& state = model.state;
  state.kind = StateKind::kDeltaRule;
  state.conv_kernel = read_size(config, "linear_conv_kernel_dim", 4, kMaxConvKernel);
  state.num_groups = read_size(config, "linear_num_key_heads", 16, kMaxHeads);
  state.num_heads = read_size(config, "linear_num_value_heads", 32, kMaxHeads);
  state.state_size = read_size(config, "linear_key_head_dim", 128, kMaxHeadDim);
  state.head_dim = read_size(config, "linear_value_head_dim", 128, kMaxHeadDim);
  state.has_norm = true;
  state.norm_first = true;
  state.norm_eps = model.norm_eps;
  check_groups(config, "linear_num_value_heads", model);
  check_state_size(config, "linear_num_value_heads", model);
}

void read_layers(const JsonReader& config, ModelConfig& model) {
  if (config.has("layer_types")) {
    return read_mixer_types(config, "layer_types",
                            {.attention = "full_attention", .state = "linear_attention"}, model);
  }
  const int32_t interval = read_size(config, "full_attention_interval", 4, kMaxLayers);
  use_attention_every(interval, interval - 1, model);
}

ModelConfig read_config(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 151936,
                                                   .default_hidden_size = 2048,
                                                   .default_num_layers = 48,
                                                   .default_num_heads = 16,
                                                   .default_num_kv_heads = 2,
                                                   .default_head_dim = 256,
                                                   .default_intermediate = 5632,
                                                   .default_max_positions = 32768,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.norm_weight_offset = 1.0F;
  model.has_output_gate = true;
  read_rope(config, model, {.takes_partial = true, .default_partial = 0.25});
  read_delta_rule(config, model);
  read_layers(config, model);
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .shared_intermediate_size = "shared_expert_intermediate_size",
                .normalises_name = "norm_topk_prob",
                .default_num_experts = 512,
                .default_top_k = 10,
                .default_intermediate = 512,
                .default_shared_intermediate = 512,
                .normalises = true},
               model);
  model.experts.has_shared_gate = true;
  read_sparse_steps(config, model);
  return model;
}

constexpr auto kFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("layer_types"),
                    read_or_null("full_attention_interval"),
                    read("linear_conv_kernel_dim"),
                    read("linear_key_head_dim"),
                    read("linear_value_head_dim"),
                    read("linear_num_key_heads"),
                    read("linear_num_value_heads"),
                    read("moe_intermediate_size"),
                    read("shared_expert_intermediate_size"),
                    read("decoder_sparse_step"),
                    read_or_null("mlp_only_layers"),
                    harmless_if("attention_bias", "[false]", "there are no biases of attention"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                }),
                kDecoderFields,
                kExpertFields);

constexpr auto kNames = std::to_array<std::string_view>({"Qwen3NextForCausalLM"});
constexpr auto kModelTypes = std::to_array<std::string_view>({"qwen3_next"});

constexpr auto kTensors = join_tensors(
    kLlamaOuterTensors,
    kLlamaNormTensors,
    std::to_array<TensorSpec>({
        {Role::kQ, "model.layers.{layer}.self_attn.q_proj.weight", Dim::kGatedQ, Dim::kHidden,
         Split::kRows},
        {.role = Role::kOutputGate,
         .name = "model.layers.{layer}.self_attn.q_proj.weight",
         .rows = Dim::kOutputGate,
         .cols = Dim::kHidden,
         .split = Split::kRows,
         .is_counted = false},
        {Role::kK, "model.layers.{layer}.self_attn.k_proj.weight", Dim::kKv, Dim::kHidden,
         Split::kRows},
        {Role::kV, "model.layers.{layer}.self_attn.v_proj.weight", Dim::kKv, Dim::kHidden,
         Split::kRows},
        {Role::kStateIn, "model.layers.{layer}.linear_attn.in_proj_qkvz.weight", Dim::kDeltaIn,
         Dim::kHidden, Split::kRows},
        {Role::kStateSecondIn, "model.layers.{layer}.linear_attn.in_proj_ba.weight",
         Dim::kDeltaSecondIn, Dim::kHidden, Split::kRows},
        {Role::kConv, "model.layers.{layer}.linear_attn.conv1d.weight", Dim::kOne,
         Dim::kConvWeights},
        {Role::kStateStepBias, "model.layers.{layer}.linear_attn.dt_bias", Dim::kOne,
         Dim::kStateHeads},
        {Role::kDecay, "model.layers.{layer}.linear_attn.A_log", Dim::kOne, Dim::kStateHeads},
        {Role::kStateNorm, "model.layers.{layer}.linear_attn.norm.weight", Dim::kOne,
         Dim::kStateHeadDim},
        {Role::kStateOut, "model.layers.{layer}.linear_attn.out_proj.weight", Dim::kHidden,
         Dim::kStateChannels},
    }),
    kLlamaOTensors,
    kQkNormTensors,
    kLlamaMlpTensors,
    kExpertTensors,
    kQwenSharedExpertTensors);

// The layers that predict more tokens at once.
constexpr auto kIgnored = std::to_array<std::string_view>({".rotary_emb.inv_freq", "mtp.*"});

}  // namespace

extern const Architecture kQwen3Next;
constexpr Architecture kQwen3Next = {
    .names = kNames,
    .model_types = kModelTypes,
    .prefix = "model.",
    .read_config = read_config,
    .fields = kFields,
    .tensors = kTensors,
    .ignored = kIgnored,
};

}  // namespace tgi
