// Cohere 1 and 2 (Command R, Aya): one norm, of which attention and MLP are computed at once, and
// neighbours of a head rotated. The second has windows, and rotates only where there is one; there
// is one of it with experts behind the first layers.
// Source: models/cohere, models/cohere2 and models/cohere2_moe in `transformers`.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/cohere_decoder.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_cohere_common(const JsonReader& config, const DecoderFields& fields) {
  ModelConfig model = read_decoder_config(config, fields);
  model.norm_kind = NormKind::kLayer;
  model.qk_norm_kind = NormKind::kLayer;
  model.parallel_branches = true;
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.logit_scale = read_positive(config, "logit_scale", 0.0625);
  return model;
}

ModelConfig read_cohere(const JsonReader& config) {
  ModelConfig model = read_cohere_common(config, kCohereDecoder);
  model.has_qk_norm = config.boolean_or("use_qk_norm", false);
  read_rope(config, model, {.default_theta = 500000.0, .interleaved = true});
  refuse_windows(config, model);
  return model;
}

ModelConfig read_cohere_2(const JsonReader& config) {
  ModelConfig model = read_cohere_common(config, kCohereDecoder);
  read_windows(
      config,
      {.default_pattern = 4, .pattern_name = "sliding_window_pattern", .null_is_no_window = false},
      model);
  read_rope(config, model, {.interleaved = true});
  for (LayerPlan& layer : model.layers) {
    if (layer.sliding_window == 0) layer.rope = kNoRope;
  }
  return model;
}

// Without layer_types dense layers, which come first, have a pattern of their own.
void read_cohere_moe_windows(const JsonReader& config, int64_t num_dense, ModelConfig& model) {
  read_windows(config, {.null_is_no_window = false}, model);
  if (config.has("layer_types")) return;
  const int64_t dense_pattern =
      read_size(config, "prefix_dense_sliding_window_pattern", 1, kMaxLayers);
  const int64_t pattern = read_size(config, "sliding_window_pattern", 4, kMaxLayers);
  for (int64_t i = 0; i < model.num_layers; ++i) {
    const bool is_full =
        i < num_dense ? ends_pattern(i, dense_pattern) : ends_pattern(i - num_dense, pattern);
    if (is_full) model.layers[static_cast<size_t>(i)].sliding_window = 0;
  }
}

// One of two words. Throws kUnsupported listing them.
bool read_word(const JsonReader& config,
               std::string_view key,
               std::string_view by_default,
               std::string_view other) {
  const std::string said = config.string_or(key, std::string(by_default));
  if (said != by_default && said != other) {
    throw Error(Code::kUnsupported, fmt::format("{}: expected {} or {}, got '{}'",
                                                config.path_of(key), by_default, other, said));
  }
  return said == by_default;
}

void read_cohere_experts(const JsonReader& config, ModelConfig& model) {
  // The softmax over the chosen is that over all, divided by their sum.
  const bool is_softmax = read_word(config, "expert_selection_fn", "softmax", "sigmoid");
  read_experts(config,
               {.score = is_softmax ? RouterScore::kSoftmax : RouterScore::kSigmoid,
                .normalises = is_softmax || config.boolean_or("norm_topk_prob", true)},
               model);
  const int64_t num_shared = config.integer_or("num_shared_experts", 0);
  const bool is_mean = read_word(config, "shared_expert_combination_strategy", "average", "sum");
  if (num_shared == 0) return;
  const int32_t count = check_size(config, "num_shared_experts", num_shared, kMaxExperts);
  model.experts.shared_intermediate_size =
      check_size(config, "num_shared_experts * intermediate_size",
                 int64_t{count} * model.experts.intermediate_size, kMaxIntermediateSize);
  if (is_mean) model.experts.output_multiplier = 0.5F;
}

ModelConfig read_cohere_2_moe(const JsonReader& config) {
  DecoderFields fields = kCohereDecoder;
  fields.default_head_dim = 128;
  const bool is_rms = config.has("rms_norm_eps");
  if (is_rms) fields.norm_eps = "rms_norm_eps";
  ModelConfig model = read_cohere_common(config, fields);
  if (is_rms) model.norm_kind = NormKind::kRms;
  read_cohere_experts(config, model);
  // Of the dense layers.
  model.intermediate_size = read_size(config, "prefix_dense_intermediate_size",
                                      model.intermediate_size, kMaxIntermediateSize);
  read_cohere_moe_windows(config, config.integer_or("first_k_dense_replace", 0), model);
  if (!read_mlp_layer_types(config, model)) read_first_sparse_layer(config, 0, model);
  read_rope(config, model, {.interleaved = true});
  const bool rotates_dense = config.integer_or("prefix_dense_sliding_window_pattern", 1) == 1;
  for (LayerPlan& layer : model.layers) {
    const bool is_rotated =
        layer.sliding_window > 0 || (rotates_dense && layer.mlp == MlpKind::kDense);
    if (!is_rotated) layer.rope = kNoRope;
  }
  return model;
}

constexpr bool has_qk_norm(const ModelConfig& config, int32_t /*layer*/) {
  return config.has_qk_norm;
}

constexpr std::string_view kCohereOneBlock = "there is one kind of block";

constexpr auto kCohereCommonFields =
    join_fields(std::to_array<KnownField>({
                    read("layer_norm_eps"),
                    read("logit_scale"),
                    read_or_null("attention_bias"),
                    read_or_null("layer_types"),
                    read_or_null("sliding_window"),
                    harmless_if("rms_norm_eps", "[]", "the norms are not of that kind"),
                    harmless_if("rope_interleaved", "[true]", "neighbours of a head are rotated"),
                    harmless_if("rope_traditional", "[true]", "neighbours of a head are rotated"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                    harmless("use_embedding_sharing", "tie_word_embeddings says it"),
                    harmless_if("use_gated_activation", "[true]", kCohereOneBlock),
                    harmless_if("use_parallel_block", "[true]", kCohereOneBlock),
                    harmless("use_parallel_embedding", "is about how the training was spread"),
                    harmless_if("position_embedding_type", R"(["rope_gptj"])", kCohereOneBlock),
                }),
                kDecoderFields);

constexpr auto kCohereFields = join_fields(kCohereCommonFields,
                                           std::to_array<KnownField>({
                                               read_or_null("use_qk_norm"),
                                               read_or_null("use_sliding_window"),
                                           }));

constexpr auto kCohereFields2 =
    join_fields(std::to_array<KnownField>({
                    read_or_null("sliding_window_pattern"),
                    harmless("_sliding_window_pattern", "layer_types stands beside it"),
                    harmless_if("use_qk_norm", "[false]", "there are no norms of q and k"),
                    harmless_if("rotary_pct", "[1.0, 1]", "whole heads are rotated"),
                    harmless("order_of_interleaved_layers", "layer_types and its pattern say it"),
                    harmless_if("layer_switch", "[4]", "layer_types and its pattern say it"),
                }),
                kCohereCommonFields);

constexpr auto kCohereFields2Moe = join_fields(
    std::to_array<KnownField>({
        harmless_if("rope_scaling", "[]", "its class reads rope_parameters"),
        harmless_if("original_max_position_embeddings", "[]", "its class reads rope_parameters"),
        read_or_null("rms_norm_eps"),
        read_or_null("sliding_window_pattern"),
        read("num_experts"),
        read("num_experts_per_tok"),
        read("norm_topk_prob"),
        read("expert_selection_fn"),
        read("num_shared_experts"),
        read("shared_expert_combination_strategy"),
        read_or_null("mlp_layer_types"),
        read_or_null("first_k_dense_replace"),
        read("prefix_dense_sliding_window_pattern"),
        read_or_null("prefix_dense_intermediate_size"),
        harmless("router_aux_loss_coef", kTrainsRouter),
        harmless("output_router_logits", kTrainsRouter),
    }),
    kCohereCommonFields);

constexpr auto kCohereNames = std::to_array<std::string_view>({"CohereForCausalLM"});
constexpr auto kCohereTypes = std::to_array<std::string_view>({"cohere"});
constexpr auto kCohereNames2 = std::to_array<std::string_view>({"Cohere2ForCausalLM"});
constexpr auto kCohereTypes2 = std::to_array<std::string_view>({"cohere2"});

constexpr auto kCohereNames2Moe = std::to_array<std::string_view>({"Cohere2MoeForCausalLM"});
constexpr auto kCohereTypes2Moe = std::to_array<std::string_view>({"cohere2_moe"});

constexpr auto kCohereTensors2 = join_tensors(kLlamaOuterTensors,
                                              kOneNormTensors,
                                              kLlamaAttentionTensors,
                                              kLlamaQkvBiasTensors,
                                              kLlamaOBiasTensors,
                                              kLlamaMlpTensors);

constexpr auto kCohereTensors2Moe =
    join_tensors(kCohereTensors2, kExpertTensors, kSharedExpertsTensors);

constexpr auto kCohereTensors =
    join_tensors(kCohereTensors2,
                 std::to_array<TensorSpec>({
                     {.role = Role::kQNorm,
                      .name = "model.layers.{layer}.self_attn.q_norm.weight",
                      .rows = Dim::kOne,
                      .cols = Dim::kQ,
                      .split = Split::kRows,
                      .only_if = has_qk_norm,
                      .by_head = true},
                     {.role = Role::kKNorm,
                      .name = "model.layers.{layer}.self_attn.k_norm.weight",
                      .rows = Dim::kOne,
                      .cols = Dim::kKv,
                      .split = Split::kRows,
                      .only_if = has_qk_norm,
                      .by_head = true},
                 }));

}  // namespace

extern const Architecture kCohere;
constexpr Architecture kCohere = {
    .names = kCohereNames,
    .model_types = kCohereTypes,
    .prefix = "model.",
    .read_config = read_cohere,
    .fields = kCohereFields,
    .tensors = kCohereTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kCohere2;
constexpr Architecture kCohere2 = {
    .names = kCohereNames2,
    .model_types = kCohereTypes2,
    .prefix = "model.",
    .read_config = read_cohere_2,
    .fields = kCohereFields2,
    .tensors = kCohereTensors2,
    .ignored = kRotaryTables,
};

extern const Architecture kCohere2Moe;
constexpr Architecture kCohere2Moe = {
    .names = kCohereNames2Moe,
    .model_types = kCohereTypes2Moe,
    .prefix = "model.",
    .read_config = read_cohere_2_moe,
    .fields = kCohereFields2Moe,
    .tensors = kCohereTensors2Moe,
    .ignored = kRotaryTables,
};

}  // namespace tgi
