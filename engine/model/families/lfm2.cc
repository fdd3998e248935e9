// LFM2: short convolutions between gates, and attention in some layers; with experts behind the
// first layers, too. Source: models/lfm2 and models/lfm2_moe in `transformers`.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/families/lfm_shared.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"
#include "engine/model/state_fields.h"

namespace tgi {
namespace {

// Two thirds of intermediate_size times a factor, rounded up, unless the config says as it is.
void adjust_intermediate(const JsonReader& config, ModelConfig& model) {
  if (!config.boolean_or("block_auto_adjust_ff_dim", true)) return;
  int64_t size = int64_t{2} * model.intermediate_size / 3;
  const auto factor = read_optional_positive(config, "block_ffn_dim_multiplier", 1.0);
  if (factor) {
    const int64_t multiple = read_size(config, "block_multiple_of", 256, kMaxIntermediateSize);
    const double scaled = std::floor(static_cast<double>(*factor) * static_cast<double>(size));
    size = (static_cast<int64_t>(std::min(scaled, 1e12)) + multiple - 1) / multiple * multiple;
  }
  model.intermediate_size = check_size(config, "intermediate_size", size, kMaxIntermediateSize);
}

struct Sizes {
  std::string_view intermediate_name;
  int64_t default_hidden_size;
  int64_t default_intermediate;
};

ModelConfig read_lfm2_common(const JsonReader& config, const Sizes& sizes) {
  ModelConfig model =
      read_decoder_config(config, {.head_dim = "",
                                   .intermediate_size = sizes.intermediate_name,
                                   .norm_eps = "norm_eps",
                                   .activation = "",
                                   .default_vocab_size = 65536,
                                   .default_hidden_size = sizes.default_hidden_size,
                                   .default_num_kv_heads = 8,
                                   .default_intermediate = sizes.default_intermediate,
                                   .default_max_positions = 128000,
                                   .default_norm_eps = 1e-5,
                                   .default_tied = config.boolean_or("tie_embedding", true)});
  read_short_convolution(config, 3, model);
  read_rope(config, model, {.default_theta = 1e6});
  if (config.has("layer_types")) {
    read_mixer_types(config, "layer_types", {.attention = "full_attention", .state = "conv"},
                     model);
  } else {
    read_attention_layers(config, "full_attn_idxs", model);
  }
  return model;
}

ModelConfig read_lfm2(const JsonReader& config) {
  const bool has_old_size = config.has("block_ff_dim");
  ModelConfig model =
      read_lfm2_common(config, {has_old_size ? "block_ff_dim" : "intermediate_size", 2560, 12288});
  adjust_intermediate(config, model);
  return model;
}

ModelConfig read_lfm2_moe(const JsonReader& config) {
  ModelConfig model = read_lfm2_common(config, {"intermediate_size", 2048, 7168});
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .normalises_name = "norm_topk_prob",
                .default_num_experts = 32,
                .default_top_k = 4,
                .default_intermediate = 1792,
                .score = RouterScore::kSigmoid,
                .normalises = true},
               model);
  model.experts.has_choice_bias = config.boolean_or("use_expert_bias", true);
  model.experts.route.scale = read_positive(config, "routed_scaling_factor", 1.0);
  const int64_t num_dense = config.integer_or("num_dense_layers", 2);
  if (num_dense < 0) {
    throw Error(Code::kInvalidArgument, config.path_of("num_dense_layers") +
                                            ": expected 0 or more, got " +
                                            std::to_string(num_dense));
  }
  for (int64_t i = num_dense; i < model.num_layers; ++i) {
    model.layers[static_cast<size_t>(i)].mlp = MlpKind::kExperts;
  }
  return model;
}

constexpr auto kLfm2CommonFields =
    join_fields(std::to_array<KnownField>({
                    read("norm_eps"),
                    read("conv_L_cache"),
                    read("conv_bias"),
                    read_or_null("layer_types"),
                    read_or_null("full_attn_idxs"),
                    read_or_null("tie_embedding"),
                    harmless("block_dim", "hidden_size says it"),
                    harmless("conv_dim", "hidden_size says it"),
                    harmless("conv_dim_out", "hidden_size says it"),
                    harmless("num_heads", "num_attention_heads says it"),
                    harmless("block_norm_eps", "norm_eps says it"),
                    harmless("block_mlp_init_scale", kOnlyTraining),
                    harmless("block_out_init_scale", kOnlyTraining),
                    harmless("block_use_xavier_init", kOnlyTraining),
                    harmless("conv_use_xavier_init", kOnlyTraining),
                    harmless_if("block_use_swiglu", "[true]", "the MLP is gated"),
                    harmless_if("use_pos_enc", "[true]", "attention has rotary embeddings"),
                    harmless_if("head_dim", "[]", "hidden_size and num_attention_heads say it"),
                    harmless_if("hidden_act", R"(["silu", "swish"])", "the MLP has silu"),
                    harmless("rms_norm_eps", "norm_eps says it"),
                }),
                kDecoderFields);

constexpr auto kLfm2Fields = join_fields(std::to_array<KnownField>({
                                             read_or_null("block_ff_dim"),
                                             read("block_auto_adjust_ff_dim"),
                                             read_or_null("block_ffn_dim_multiplier"),
                                             read("block_multiple_of"),
                                         }),
                                         kLfm2CommonFields);

constexpr auto kLfm2FieldsMoe = join_fields(std::to_array<KnownField>({
                                                read("num_dense_layers"),
                                                read("moe_intermediate_size"),
                                                read("use_expert_bias"),
                                                read("routed_scaling_factor"),
                                            }),
                                            kExpertFields,
                                            kLfm2CommonFields);

constexpr auto kLfm2NamesMoe = std::to_array<std::string_view>({"Lfm2MoeForCausalLM"});
constexpr auto kLfm2TypesMoe = std::to_array<std::string_view>({"lfm2_moe"});
constexpr auto kLfm2Names = std::to_array<std::string_view>({"Lfm2ForCausalLM"});
constexpr auto kLfm2Types = std::to_array<std::string_view>({"lfm2"});

constexpr auto kLfm2Tensors =
    join_tensors(kLlamaEmbeddingTensors,
                 kLfmTensors,
                 std::to_array<TensorSpec>({
                     {Role::kO, "model.layers.{layer}.self_attn.out_proj.weight", Dim::kHidden,
                      Dim::kQ, Split::kColumns},
                     {Role::kQNorm, "model.layers.{layer}.self_attn.q_layernorm.weight", Dim::kOne,
                      Dim::kHeadDim},
                     {Role::kKNorm, "model.layers.{layer}.self_attn.k_layernorm.weight", Dim::kOne,
                      Dim::kHeadDim},
                 }),
                 kLlamaQkvTensors);

constexpr auto kLfm2TensorsMoe = join_tensors(
    kLfm2Tensors,
    std::to_array<TensorSpec>({
        {Role::kRouter, "model.layers.{layer}.feed_forward.gate.weight", Dim::kExperts,
         Dim::kHidden, Split::kNone, has_experts},
        {Role::kChoiceBias, "model.layers.{layer}.feed_forward.expert_bias", Dim::kOne,
         Dim::kExperts, Split::kNone, has_choice_bias},
        {Role::kExpertGate, "model.layers.{layer}.feed_forward.experts.{expert}.w1.weight",
         Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
        {Role::kExpertUp, "model.layers.{layer}.feed_forward.experts.{expert}.w3.weight",
         Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
        {Role::kExpertDown, "model.layers.{layer}.feed_forward.experts.{expert}.w2.weight",
         Dim::kHidden, Dim::kExpertIntermediate, Split::kColumns, has_experts},
    }));

}  // namespace

extern const Architecture kLfm2;
constexpr Architecture kLfm2 = {
    .names = kLfm2Names,
    .model_types = kLfm2Types,
    .prefix = "model.",
    .read_config = read_lfm2,
    .fields = kLfm2Fields,
    .tensors = kLfm2Tensors,
    .ignored = kRotaryTables,
};

extern const Architecture kLfm2Moe;
constexpr Architecture kLfm2Moe = {
    .names = kLfm2NamesMoe,
    .model_types = kLfm2TypesMoe,
    .prefix = "model.",
    .read_config = read_lfm2_moe,
    .fields = kLfm2FieldsMoe,
    .tensors = kLfm2TensorsMoe,
    .ignored = kRotaryTables,
};

}  // namespace tgi
