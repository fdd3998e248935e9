// Nemotron-H: layers of one branch each, which is a Mamba 2, attention without positions, an MLP or
// experts, which may read a narrower row than the stream. Source: models/nemotron_h in
// `transformers`; https://arxiv.org/abs/2504.03624.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

constexpr std::string_view kBlockPattern = "hybrid_override_pattern";
constexpr std::string_view kBlockWords = "layers_block_type";

struct BlockType {
  char letter;
  std::string_view name;
  std::string_view later_name;  // since transformers 5.24
  LayerPlan plan;
};
constexpr std::array<BlockType, 4> kBlockTypes = {{
    {'M',
     "mamba",
     "linear_attention",
     {.has_attention = false, .has_state = true, .mlp = MlpKind::kNone}},
    {'*', "attention", "full_attention", {.mlp = MlpKind::kNone}},
    {'-', "mlp", "mlp", {.has_attention = false}},
    {'E', "moe", "moe", {.has_attention = false, .mlp = MlpKind::kExperts}},
}};

[[noreturn]] void fail_block(const std::string& field, std::string_view got) {
  throw Error(Code::kUnsupported,
              fmt::format("{}: '{}' is no kind of layer; known are M (mamba), * (attention), - "
                          "(mlp), E (moe)",
                          field, got));
}

// From a letter for each layer, a word, or both.
std::vector<LayerPlan> read_blocks(const JsonReader& config) {
  std::vector<LayerPlan> out;
  const auto add = [&](std::string_view key, std::string_view got) {
    for (const BlockType& type : kBlockTypes) {
      if (got != type.name && got != type.later_name && got != std::string_view(&type.letter, 1))
        continue;
      out.push_back(type.plan);
      return;
    }
    fail_block(config.path_of(key), got);
  };
  for (const std::string& type : config.strings_or_empty(kBlockWords)) add(kBlockWords, type);
  const std::vector<LayerPlan> by_words = std::exchange(out, {});
  if (config.has(kBlockPattern) || !config.has(kBlockWords)) {
    const std::string pattern = config.string_or(kBlockPattern, "ME*E");
    for (size_t i = 0; i < pattern.size(); ++i) {
      add(kBlockPattern, std::string_view(pattern).substr(i, 1));
    }
  }
  if (!config.has(kBlockWords)) return out;
  if (config.has(kBlockPattern) && out != by_words) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: says other layers than {}; leave one of them",
                            config.path_of(kBlockWords), config.path_of(kBlockPattern)));
  }
  return by_words;
}

void use_blocks(const JsonReader& config, std::vector<LayerPlan> blocks, ModelConfig& model) {
  if (blocks.size() != model.layers.size()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected {} layers, as num_hidden_layers says, got {}",
                            config.path_of(config.has(kBlockWords) ? kBlockWords : kBlockPattern),
                            model.num_layers, blocks.size()));
  }
  model.layers = std::move(blocks);
}

void read_routed(const JsonReader& config, ModelConfig& model) {
  read_deepseek_experts(
      config, {.default_num_experts = 8, .default_top_k = 2, .default_intermediate = 7688}, model);
  if (config.has("moe_latent_size")) {
    model.experts.hidden_size = read_size(config, "moe_latent_size", 1, kMaxHiddenSize);
  }
  if (model.experts.shared_intermediate_size == 0) return;
  model.experts.shared_intermediate_size =
      read_size(config, "moe_shared_expert_intermediate_size", 7688, kMaxIntermediateSize);
}

ModelConfig read_nemotron_h(const JsonReader& config) {
  std::vector<LayerPlan> blocks = read_blocks(config);
  ModelConfig model =
      read_decoder_config(config, {.norm_eps = "layer_norm_epsilon",
                                   .activation = "mlp_hidden_act",
                                   .default_vocab_size = 131072,
                                   .default_num_layers = static_cast<int64_t>(blocks.size()),
                                   .default_num_kv_heads = 8,
                                   .default_head_dim = 128,
                                   .default_intermediate = 21504,
                                   .default_max_positions = 4096,
                                   .default_norm_eps = 1e-5,
                                   .default_activation = "relu2"});
  use_blocks(config, std::move(blocks), model);
  model.gated_mlp = false;
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_mamba2(config,
              {.num_heads = "mamba_num_heads",
               .head_dim = "mamba_head_dim",
               .state_size = "ssm_state_size",
               .num_groups = "n_groups",
               .conv_kernel = "conv_kernel",
               .conv_bias = "use_conv_bias",
               .in_bias = "use_bias",
               .out_bias = "use_bias",
               .step_limit = "time_step_limit"},
              model);
  const bool has_routed = std::ranges::any_of(
      model.layers, [](const LayerPlan& plan) { return plan.mlp == MlpKind::kExperts; });
  if (has_routed) read_routed(config, model);
  refuse_windows(config, model);
  return model;
}

constexpr std::string_view kOtherSpelling = "other fields say it";

constexpr auto kNemotronHFields = join_fields(
    std::to_array<KnownField>({
        read("vocab_size"),
        read("hidden_size"),
        read("intermediate_size"),
        read("num_hidden_layers"),
        read("num_attention_heads"),
        read_or_null("num_key_value_heads"),
        read_or_null("head_dim"),
        read("max_position_embeddings"),
        read("layer_norm_epsilon"),
        read_or_null("tie_word_embeddings"),
        read("mlp_hidden_act"),
        read("mlp_bias"),
        read_or_null("hybrid_override_pattern"),
        read_or_null("layers_block_type"),
        read("mamba_num_heads"),
        read("mamba_head_dim"),
        read("ssm_state_size"),
        read("n_groups"),
        read("conv_kernel"),
        read("use_bias"),
        read("use_conv_bias"),
        read_or_null("time_step_limit"),
        read_or_null("sliding_window"),
        read("moe_shared_expert_intermediate_size"),
        harmless_if(
            "n_shared_experts", "[1]", "moe_shared_expert_intermediate_size says how large it is"),
        harmless("first_k_dense_replace", "the kinds of layers say it"),
        harmless("expand", "heads and their size say how wide it is"),
        harmless("attention_head_dim", "head_dim says it"),
        harmless("norm_eps", "layer_norm_epsilon says it"),
        harmless("num_nextn_predict_layers", "tokens are predicted one by one"),
        harmless("mtp_hybrid_override_pattern", "tokens are predicted one by one"),
        harmless("mtp_layers_block_type", "tokens are predicted one by one"),
        harmless("moe_shared_expert_overlap", kSameSums),
        harmless("mamba_ssm_cache_dtype", "states are f32"),
        harmless_if("attention_bias", "[false]", "there are no biases of attention"),
        harmless_if("mamba_proj_bias", "[false]", "use_bias says which biases there are"),
        harmless_if("mamba_hidden_act", R"(["silu", "swish"])", "convolutions and gates have silu"),
        read_or_null("moe_latent_size"),
        harmless_if("mamba_chunk_size", "[]", kOtherSpelling),
        harmless_if("mamba_conv_bias", "[]", kOtherSpelling),
        harmless_if("mamba_d_conv", "[]", kOtherSpelling),
        harmless_if("mamba_dt_init_floor", "[]", kOtherSpelling),
        harmless_if("mamba_dt_limit", "[]", kOtherSpelling),
        harmless_if("mamba_dt_max", "[]", kOtherSpelling),
        harmless_if("mamba_dt_min", "[]", kOtherSpelling),
        harmless_if("mamba_expand", "[]", kOtherSpelling),
        harmless_if("mamba_n_groups", "[]", kOtherSpelling),
    }),
    kMambaFields,
    kDeepSeekExpertFields);

constexpr auto kNemotronHNames = std::to_array<std::string_view>({"NemotronHForCausalLM"});
constexpr auto kNemotronHTypes = std::to_array<std::string_view>({"nemotron_h"});

constexpr bool is_mlp(const ModelConfig& config, int32_t layer) {
  return !has_mixer(config, layer);
}
constexpr bool has_nemotron_h_shared_bias(const ModelConfig& config, int32_t layer) {
  return has_shared_expert(config, layer) && config.mlp_bias;
}
constexpr bool has_nemotron_h_dense_bias(const ModelConfig& config, int32_t layer) {
  return has_dense_mlp(config, layer) && config.mlp_bias;
}

constexpr bool has_narrow_experts(const ModelConfig& config, int32_t layer) {
  return has_experts(config, layer) && config.experts.hidden_size > 0;
}
constexpr bool has_narrow_bias(const ModelConfig& config, int32_t layer) {
  return has_narrow_experts(config, layer) && config.mlp_bias;
}

constexpr auto kMixerTensors = std::to_array<TensorSpec>({
    {Role::kMlpNorm, "backbone.layers.{layer}.norm.weight", Dim::kOne, Dim::kHidden, Split::kNone,
     is_mlp},
    {Role::kQ, "backbone.layers.{layer}.mixer.q_proj.weight", Dim::kQ, Dim::kHidden, Split::kRows},
    {Role::kK, "backbone.layers.{layer}.mixer.k_proj.weight", Dim::kKv, Dim::kHidden, Split::kRows},
    {Role::kV, "backbone.layers.{layer}.mixer.v_proj.weight", Dim::kKv, Dim::kHidden, Split::kRows},
    {Role::kO, "backbone.layers.{layer}.mixer.o_proj.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kUp, "backbone.layers.{layer}.mixer.up_proj.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows, has_dense_mlp},
    {Role::kUpBias, "backbone.layers.{layer}.mixer.up_proj.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows, has_nemotron_h_dense_bias},
    {Role::kDown, "backbone.layers.{layer}.mixer.down_proj.weight", Dim::kHidden,
     Dim::kIntermediate, Split::kColumns, has_dense_mlp},
    {Role::kDownBias, "backbone.layers.{layer}.mixer.down_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, has_nemotron_h_dense_bias},
    {Role::kRouter, "backbone.layers.{layer}.mixer.gate.weight", Dim::kExperts, Dim::kHidden,
     Split::kNone, has_experts},
    {Role::kChoiceBias, "backbone.layers.{layer}.mixer.gate.e_score_correction_bias", Dim::kOne,
     Dim::kExperts, Split::kNone, has_choice_bias},
    {Role::kExpertUp, "backbone.layers.{layer}.mixer.experts.{expert}.up_proj.weight",
     Dim::kExpertIntermediate, Dim::kExpertHidden, Split::kRows, has_experts},
    {Role::kExpertsIn, "backbone.layers.{layer}.mixer.fc1_latent_proj.weight", Dim::kExpertHidden,
     Dim::kHidden, Split::kNone, has_narrow_experts},
    {Role::kExpertsInBias, "backbone.layers.{layer}.mixer.fc1_latent_proj.bias", Dim::kOne,
     Dim::kExpertHidden, Split::kNone, has_narrow_bias},
    {Role::kExpertsOut, "backbone.layers.{layer}.mixer.fc2_latent_proj.weight", Dim::kHidden,
     Dim::kExpertHidden, Split::kNone, has_narrow_experts},
    {Role::kExpertsOutBias, "backbone.layers.{layer}.mixer.fc2_latent_proj.bias", Dim::kOne,
     Dim::kHidden, Split::kNone, has_narrow_bias},
    {Role::kExpertDown, "backbone.layers.{layer}.mixer.experts.{expert}.down_proj.weight",
     Dim::kExpertHidden, Dim::kExpertIntermediate, Split::kColumns, has_experts},
    {Role::kSharedUp, "backbone.layers.{layer}.mixer.shared_experts.up_proj.weight",
     Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_shared_expert},
    {Role::kSharedUpBias, "backbone.layers.{layer}.mixer.shared_experts.up_proj.bias", Dim::kOne,
     Dim::kSharedIntermediate, Split::kRows, has_nemotron_h_shared_bias},
    {Role::kSharedDown, "backbone.layers.{layer}.mixer.shared_experts.down_proj.weight",
     Dim::kHidden, Dim::kSharedIntermediate, Split::kColumns, has_shared_expert},
    {Role::kSharedDownBias, "backbone.layers.{layer}.mixer.shared_experts.down_proj.bias",
     Dim::kOne, Dim::kHidden, Split::kColumns, has_nemotron_h_shared_bias},
});

constexpr auto kNemotronHTensors = join_tensors(kBackboneTensors, kMamba2Tensors, kMixerTensors);

// The layers that predict more tokens at once.
constexpr auto kNemotronHIgnored = std::to_array<std::string_view>({"mtp.*"});

}  // namespace

extern const Architecture kNemotronH;
constexpr Architecture kNemotronH = {
    .names = kNemotronHNames,
    .model_types = kNemotronHTypes,
    .prefix = "backbone.",
    .read_config = read_nemotron_h,
    .fields = kNemotronHFields,
    .tensors = kNemotronHTensors,
    .ignored = kNemotronHIgnored,
};

}  // namespace tgi
