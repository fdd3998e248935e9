// Lara 4 Mini: the gated delta rule by turns with Qwen 3's attention, which is rotated only where
// there is a window, and experts everywhere beside one that all tokens go to. What makes the rule's
// inputs is one matrix. Source: models/lara_mini in `transformers`, and what its
// conversion_mapping.py says of published files.
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/delta_rule_fields.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr std::string_view kRuleLayer = "linear_attention";
constexpr std::string_view kWindowLayer = "sliding_attention";
constexpr std::string_view kFullLayer = "full_attention";

// Of a config without layer_types, over and over.
constexpr auto kLaraPattern = std::to_array<std::string_view>(
    {kRuleLayer, kWindowLayer, kRuleLayer, kFullLayer, kWindowLayer});

std::vector<std::string> lara_layer_types(const JsonReader& config, const ModelConfig& model) {
  if (config.has("layer_types")) return read_layer_names(config, "layer_types", model);
  std::vector<std::string> types;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    types.emplace_back(kLaraPattern[i % kLaraPattern.size()]);
  }
  return types;
}

// REQUIRES: ropes are read.
void read_lara_layers(const JsonReader& config, ModelConfig& model) {
  const int32_t window = read_size(config, "sliding_window", 512, kMaxPositions);
  const std::vector<std::string> types = lara_layer_types(config, model);
  for (size_t i = 0; i < types.size(); ++i) {
    LayerPlan& layer = model.layers[i];
    if (types[i] == kWindowLayer) {
      layer.sliding_window = window;
      continue;
    }
    layer.rope = kNoRope;
    if (types[i] == kFullLayer) continue;
    if (types[i] != kRuleLayer) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}[{}]: '{}' is not supported; known are {}, {}, {}",
                              config.path_of("layer_types"), i, types[i], kRuleLayer, kWindowLayer,
                              kFullLayer));
    }
    layer.has_attention = false;
    layer.has_state = true;
  }
}

ModelConfig read_lara_mini(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 151936,
                                                   .default_hidden_size = 1024,
                                                   .default_num_layers = 34,
                                                   .default_num_heads = 16,
                                                   .default_num_kv_heads = 4,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = -1,
                                                   .default_max_positions = 131072,
                                                   .default_tied = true,
                                                   .default_bos = -1,
                                                   .default_eos = 151643});
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_rope(config, model);
  read_delta_rule(config, {.num_key_heads = 8, .num_value_heads = 16}, model);
  read_lara_layers(config, model);
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .shared_intermediate_size = "shared_expert_intermediate_size",
                .normalises_name = "norm_topk_prob",
                .default_num_experts = 128,
                .default_top_k = 4,
                .default_intermediate = 512,
                .default_shared_intermediate = 512,
                .normalises = true},
               model);
  use_experts_in_all_layers(model);
  return model;
}

constexpr auto kLaraMiniFields = join_fields(
    std::to_array<KnownField>({
        read_or_null("attention_bias"),
        read("sliding_window"),
        read("moe_intermediate_size"),
        read("shared_expert_intermediate_size"),
        harmless("intermediate_size", "all layers have experts"),
        harmless_if("full_attention_interval", "[]", "layer_types says which layers attend"),
        harmless_if("decoder_sparse_step", "[1]", "all layers have experts"),
        harmless_if("mlp_only_layers", "[[]]", "all layers have experts"),
        harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
    }),
    kDeltaRuleFields,
    kDecoderFields,
    kExpertFields);

constexpr auto kLaraMiniNames = std::to_array<std::string_view>({"LaraMiniForCausalLM"});
constexpr auto kLaraMiniTypes = std::to_array<std::string_view>({"lara_mini"});

constexpr auto kLaraMiniMixerTensors = join_tensors(
    kLlamaOuterTensors,
    kLlamaNormTensors,
    kLlamaAttentionTensors,
    kLlamaQkvBiasTensors,
    kLlamaOBiasTensors,
    kQkNormTensors,
    std::to_array<TensorSpec>({
        {Role::kStateIn, "model.layers.{layer}.linear_attn.in_proj.weight", Dim::kStateIn,
         Dim::kHidden},
        {Role::kConv, "model.layers.{layer}.linear_attn.conv1d.weight", Dim::kOne,
         Dim::kConvWeights},
        {Role::kStateStepBias, "model.layers.{layer}.linear_attn.dt_bias", Dim::kOne,
         Dim::kStateHeads},
        {Role::kDecay, "model.layers.{layer}.linear_attn.A_log", Dim::kOne, Dim::kStateHeads},
        {Role::kStateNorm, "model.layers.{layer}.linear_attn.out_norm.weight", Dim::kOne,
         Dim::kStateHeadDim},
        {Role::kStateOut, "model.layers.{layer}.linear_attn.out_proj.weight", Dim::kHidden,
         Dim::kStateChannels},
    }));
constexpr auto kLaraMiniTensors =
    join_tensors(kLaraMiniMixerTensors, kStackedExpertTensors, kQwenSharedExpertTensors);
constexpr auto kLaraMiniSeparateTensors =
    join_tensors(kLaraMiniMixerTensors, kExpertTensors, kQwenSharedExpertTensors);

}  // namespace

extern const Architecture kLaraMini;
constexpr Architecture kLaraMini = {
    .names = kLaraMiniNames,
    .model_types = kLaraMiniTypes,
    .prefix = "model.",
    .read_config = read_lara_mini,
    .fields = kLaraMiniFields,
    .tensors = kLaraMiniTensors,
    .tensors_of_separate_experts = kLaraMiniSeparateTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
