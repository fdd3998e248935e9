// Arcee Trinity (AFMoE): gated attention with norms of the heads of q and k, rotated only where
// there is a window; norms before and after the branches; experts chosen by sigmoids with a bias
// behind the first layers. Source: models/afmoe in `transformers`.
#include <fmt/format.h>

#include <array>
#include <cmath>
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

void read_afmoe_experts(const JsonReader& config, ModelConfig& model) {
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .default_num_experts = 64,
                .default_top_k = 6,
                .default_intermediate = 1408,
                .score = RouterScore::kSigmoid,
                .normalises = true},
               model);
  ExpertsConfig& experts = model.experts;
  experts.has_choice_bias = true;
  experts.route.scale = read_positive(config, "route_scale", 1.0);
  const int64_t num_shared = config.integer_or("num_shared_experts", 2);
  if (num_shared != 0) {
    experts.shared_intermediate_size = check_size(
        config, "num_shared_experts", num_shared * experts.intermediate_size, kMaxIntermediateSize);
  }
  const int64_t num_dense = config.integer_or("num_dense_layers", 1);
  if (num_dense < 0) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: expected 0 or more, got {}",
                                                    config.path_of("num_dense_layers"), num_dense));
  }
  for (int64_t i = num_dense; i < model.num_layers; ++i) {
    model.layers[static_cast<size_t>(i)].mlp = MlpKind::kExperts;
  }
}

ModelConfig read_afmoe(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 200192,
                                                   .default_hidden_size = 2048,
                                                   .default_num_heads = 16,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 6144,
                                                   .default_max_positions = 16384,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.has_output_gate = true;
  model.attention_bias = config.boolean_or("attention_bias", false);
  if (config.boolean_or("mup_enabled", false)) {
    model.embedding_multiplier = std::sqrt(static_cast<float>(model.hidden_size));
  }
  read_windows(config,
               {.default_window = 1024,
                .default_pattern = 4,
                .pattern_name = "global_attn_every_n_layers",
                .null_is_no_window = false},
               model);
  read_rope(config, model);
  for (LayerPlan& layer : model.layers) {
    if (layer.sliding_window == 0) layer.rope = kNoRope;
  }
  read_afmoe_experts(config, model);
  return model;
}

constexpr auto kAfmoeFields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("mup_enabled"),
                    read_or_null("sliding_window"),
                    read_or_null("layer_types"),
                    read("global_attn_every_n_layers"),
                    read("num_experts"),
                    read("num_experts_per_tok"),
                    read("num_shared_experts"),
                    read("num_dense_layers"),
                    read("moe_intermediate_size"),
                    read("route_scale"),
                    harmless_if("score_func", R"(["sigmoid"])", "scores are sigmoids"),
                    harmless_if("route_norm", "[true]", "weights of experts are normalised"),
                    harmless_if("n_group", "[1]", "experts have no groups"),
                    harmless_if("topk_group", "[1]", "experts have no groups"),
                    harmless_if("num_expert_groups", "[1]", "experts have no groups"),
                    harmless_if("num_limited_groups", "[1]", "experts have no groups"),
                    harmless("use_grouped_mm", kSameSums),
                    harmless("load_balance_coeff", kTrainsRouter),
                    harmless("output_router_logits", kTrainsRouter),
                }));

constexpr auto kAfmoeNames = std::to_array<std::string_view>({"AfmoeForCausalLM"});
constexpr auto kAfmoeTypes = std::to_array<std::string_view>({"afmoe"});

constexpr auto kAfmoeOwnTensors = std::to_array<TensorSpec>({
    {Role::kAttentionNorm, "model.layers.{layer}.input_layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kAttentionPostNorm, "model.layers.{layer}.post_attention_layernorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNorm, "model.layers.{layer}.pre_mlp_layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpPostNorm, "model.layers.{layer}.post_mlp_layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kOutputGate, "model.layers.{layer}.self_attn.gate_proj.weight", Dim::kQ, Dim::kHidden,
     Split::kRows},
    {Role::kRouter, "model.layers.{layer}.mlp.router.gate.weight", Dim::kExperts, Dim::kHidden,
     Split::kNone, has_experts},
    {Role::kChoiceBias, "model.layers.{layer}.mlp.expert_bias", Dim::kOne, Dim::kExperts,
     Split::kNone, has_choice_bias},
    {Role::kExpertGate, "model.layers.{layer}.mlp.experts.{expert}.gate_proj.weight",
     Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
    {Role::kExpertUp, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight",
     Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
    {Role::kExpertDown, "model.layers.{layer}.mlp.experts.{expert}.down_proj.weight", Dim::kHidden,
     Dim::kExpertIntermediate, Split::kColumns, has_experts},
});

constexpr auto kAfmoeTensors = join_tensors(kLlamaOuterTensors,
                                            kLlamaAttentionTensors,
                                            kLlamaQkvBiasTensors,
                                            kLlamaOBiasTensors,
                                            kQkNormTensors,
                                            kLlamaMlpTensors,
                                            kSharedExpertsTensors,
                                            kAfmoeOwnTensors);

}  // namespace

extern const Architecture kAfmoe;
constexpr Architecture kAfmoe = {
    .names = kAfmoeNames,
    .model_types = kAfmoeTypes,
    .prefix = "model.",
    .read_config = read_afmoe,
    .fields = kAfmoeFields,
    .tensors = kAfmoeTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
