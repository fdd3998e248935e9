// RecurrentGemma (Griffin): Gemma's block, in which real-gated linear recurrent units take the
// place of attention in most layers and attention has a window in the others. Source:
// models/recurrent_gemma in `transformers`; https://arxiv.org/abs/2402.19427.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"
#include "engine/model/state_fields.h"
#include "engine/tensor/half.h"

namespace tgi {
namespace {

constexpr auto kAttentionRopeTypes = std::to_array<std::string_view>({"default"});

// Layers are of these kinds in turns.
void read_block_types(const JsonReader& config, ModelConfig& model) {
  constexpr std::string_view kKey = "block_types";
  std::vector<std::string> types = {"recurrent", "recurrent", "attention"};
  if (config.has(kKey)) types = config.strings_or_empty(kKey);
  if (types.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected a list of kinds of layers, got {}", config.path_of(kKey),
                            config.json().at(std::string(kKey)).dump()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == "recurrent" || types[i] == "attention") continue;
    throw Error(Code::kUnsupported,
                fmt::format("{}[{}]: '{}' is not supported; known are recurrent, attention",
                            config.path_of(kKey), i, types[i]));
  }
  for (size_t i = 0; i < model.layers.size(); ++i) {
    LayerPlan& layer = model.layers[i];
    layer.has_state = types[i % types.size()] == "recurrent";
    layer.has_attention = !layer.has_state;
  }
}

// The matrices of a unit's gates are those of as many heads as attention has.
void read_units(const JsonReader& config, ModelConfig& model) {
  constexpr std::string_view kKey = "lru_width";
  StateConfig& state = model.state;
  state.kind = StateKind::kRgLru;
  state.num_heads = model.num_heads;
  state.state_size = 1;
  state.conv_kernel = read_size(config, "conv1d_width", 4, kMaxConvKernel);
  const int32_t width =
      config.has(kKey) ? read_size(config, kKey, 0, kMaxIntermediateSize) : model.hidden_size;
  if (width % state.num_heads != 0) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: {} channels{} can't be dealt out to {} heads evenly", config.path_of(kKey),
                    width, config.has(kKey) ? "" : " (hidden_size, as the field is missing)",
                    state.num_heads));
  }
  state.head_dim = width / state.num_heads;
  check_state_size(config, kKey, model);
}

ModelConfig read_recurrent_gemma(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.max_positions = "",
                                                   .activation = "hidden_activation",
                                                   .default_vocab_size = 256000,
                                                   .default_hidden_size = 2560,
                                                   .default_num_layers = 26,
                                                   .default_num_heads = 10,
                                                   .default_intermediate = 7680,
                                                   .default_max_positions = kUnboundedContext,
                                                   .default_activation = "gelu_pytorch_tanh",
                                                   .default_tied = true,
                                                   .default_bos = 2,
                                                   .default_eos = 1});
  // The field counts gate and up together.
  model.intermediate_size =
      check_size(config, "intermediate_size", model.intermediate_size / 2, kMaxIntermediateSize);
  model.norm_weight_offset = 1.0F;
  // Is held in bf16, whatever the model is computed in.
  model.embedding_multiplier =
      bf16_to_f32(f32_to_bf16(std::sqrt(static_cast<float>(model.hidden_size))));
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.logit_softcap = read_positive(config, "logits_soft_cap", 30.0);
  read_block_types(config, model);
  read_units(config, model);
  const int32_t window = read_size(config, "attention_window_size", 2048, kMaxPositions);
  for (LayerPlan& layer : model.layers) {
    if (layer.has_attention) layer.sliding_window = window;
  }
  read_rope(config, model,
            {.takes_partial = true, .default_partial = 0.5, .types = kAttentionRopeTypes});
  return model;
}

constexpr auto kRecurrentGemmaFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("intermediate_size"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read_or_null("num_key_value_heads"),
    read_or_null("head_dim"),
    read("hidden_activation"),
    read("rms_norm_eps"),
    read_or_null("tie_word_embeddings"),
    read("rope_theta"),
    read_or_null("rope_scaling"),
    read_or_null("rope_parameters"),
    read_or_null("partial_rotary_factor"),
    read_or_null("attention_bias"),
    read_or_null("lru_width"),
    read("conv1d_width"),
    read("attention_window_size"),
    read("logits_soft_cap"),
    read_or_null("block_types"),
    harmless("hidden_act", "hidden_activation says it"),
    harmless("max_position_embeddings", "the context has no bound: windows and states are as long"),
    harmless("embeddings_scale_by_sqrt_dim", "embeddings are multiplied, whatever it says"),
    harmless("w_init_variance_scale", kStartsTraining),
    harmless("final_w_init_variance_scale", kStartsTraining),
});

constexpr auto kRecurrentGemmaAliases =
    std::to_array<FieldAlias>({{"sliding_window", "attention_window_size"}});

constexpr auto kRecurrentGemmaNames =
    std::to_array<std::string_view>({"RecurrentGemmaForCausalLM"});
constexpr auto kRecurrentGemmaTypes = std::to_array<std::string_view>({"recurrent_gemma"});

constexpr TensorSpec gate_matrices(Role role, std::string_view name) {
  return {.role = role,
          .name = name,
          .rows = Dim::kStateHeadDim,
          .cols = Dim::kStateHeadDim,
          .transposed = true,
          .stacked = true};
}
constexpr TensorSpec gate_bias(Role role, std::string_view name) {
  return {
      .role = role, .name = name, .rows = Dim::kOne, .cols = Dim::kStateChannels, .by_head = true};
}

constexpr auto kRecurrentGemmaTensors = join_tensors(
    kLlamaEmbeddingTensors,
    std::to_array<TensorSpec>({
        {Role::kFinalNorm, "model.final_norm.weight", Dim::kOne, Dim::kHidden},
        {Role::kAttentionNorm, "model.layers.{layer}.temporal_pre_norm.weight", Dim::kOne,
         Dim::kHidden},
        {Role::kMlpNorm, "model.layers.{layer}.channel_pre_norm.weight", Dim::kOne, Dim::kHidden},
    }),
    std::to_array<TensorSpec>({
        {Role::kQ, "model.layers.{layer}.temporal_block.q_proj.weight", Dim::kQ, Dim::kHidden,
         Split::kRows},
        {Role::kK, "model.layers.{layer}.temporal_block.k_proj.weight", Dim::kKv, Dim::kHidden,
         Split::kRows},
        {Role::kV, "model.layers.{layer}.temporal_block.v_proj.weight", Dim::kKv, Dim::kHidden,
         Split::kRows},
        {Role::kO, "model.layers.{layer}.temporal_block.o_proj.weight", Dim::kHidden, Dim::kQ,
         Split::kColumns},
        {Role::kQBias, "model.layers.{layer}.temporal_block.q_proj.bias", Dim::kOne, Dim::kQ,
         Split::kRows, has_attention_bias},
        {Role::kKBias, "model.layers.{layer}.temporal_block.k_proj.bias", Dim::kOne, Dim::kKv,
         Split::kRows, has_attention_bias},
        {Role::kVBias, "model.layers.{layer}.temporal_block.v_proj.bias", Dim::kOne, Dim::kKv,
         Split::kRows, has_attention_bias},
        {Role::kOBias, "model.layers.{layer}.temporal_block.o_proj.bias", Dim::kOne, Dim::kHidden,
         Split::kColumns},
    }),
    std::to_array<TensorSpec>({
        {Role::kStateIn, "model.layers.{layer}.temporal_block.linear_y.weight", Dim::kStateChannels,
         Dim::kHidden},
        {Role::kStateInBias, "model.layers.{layer}.temporal_block.linear_y.bias", Dim::kOne,
         Dim::kStateChannels},
        {Role::kStateValueIn, "model.layers.{layer}.temporal_block.linear_x.weight",
         Dim::kStateChannels, Dim::kHidden},
        {Role::kStateValueInBias, "model.layers.{layer}.temporal_block.linear_x.bias", Dim::kOne,
         Dim::kStateChannels},
        {Role::kConv, "model.layers.{layer}.temporal_block.conv_1d.weight", Dim::kOne,
         Dim::kConvWeights},
        {Role::kConvBias, "model.layers.{layer}.temporal_block.conv_1d.bias", Dim::kOne,
         Dim::kConvChannels},
        {Role::kRgLruDecay, "model.layers.{layer}.temporal_block.rg_lru.recurrent_param", Dim::kOne,
         Dim::kStateChannels},
        gate_matrices(Role::kInputGate,
                      "model.layers.{layer}.temporal_block.rg_lru.input_gate_weight"),
        gate_bias(Role::kInputGateBias,
                  "model.layers.{layer}.temporal_block.rg_lru.input_gate_bias"),
        gate_matrices(Role::kDecayGate,
                      "model.layers.{layer}.temporal_block.rg_lru.recurrent_gate_weight"),
        gate_bias(Role::kDecayGateBias,
                  "model.layers.{layer}.temporal_block.rg_lru.recurrent_gate_bias"),
        {Role::kStateOut, "model.layers.{layer}.temporal_block.linear_out.weight", Dim::kHidden,
         Dim::kStateChannels},
        {Role::kStateOutBias, "model.layers.{layer}.temporal_block.linear_out.bias", Dim::kOne,
         Dim::kHidden},
    }),
    std::to_array<TensorSpec>({
        {Role::kGate, "model.layers.{layer}.mlp_block.gate_proj.weight", Dim::kIntermediate,
         Dim::kHidden, Split::kRows},
        {Role::kGateBias, "model.layers.{layer}.mlp_block.gate_proj.bias", Dim::kOne,
         Dim::kIntermediate, Split::kRows},
        {Role::kUp, "model.layers.{layer}.mlp_block.up_proj.weight", Dim::kIntermediate,
         Dim::kHidden, Split::kRows},
        {Role::kUpBias, "model.layers.{layer}.mlp_block.up_proj.bias", Dim::kOne,
         Dim::kIntermediate, Split::kRows},
        {Role::kDown, "model.layers.{layer}.mlp_block.down_proj.weight", Dim::kHidden,
         Dim::kIntermediate, Split::kColumns},
        {Role::kDownBias, "model.layers.{layer}.mlp_block.down_proj.bias", Dim::kOne, Dim::kHidden,
         Split::kColumns},
    }));

}  // namespace

extern const Architecture kRecurrentGemma;
constexpr Architecture kRecurrentGemma = {
    .names = kRecurrentGemmaNames,
    .model_types = kRecurrentGemmaTypes,
    .prefix = "model.",
    .read_config = read_recurrent_gemma,
    .fields = kRecurrentGemmaFields,
    .aliases = kRecurrentGemmaAliases,
    .tensors = kRecurrentGemmaTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
