// Cohere 1 and 2 (Command R, Aya): one norm, of which attention and MLP are computed at once, and
// neighbours of a head rotated. The second has windows, and rotates only where there is one.
// Source: models/cohere and models/cohere2 in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kCohereDecoder = {
    .norm_eps = "layer_norm_eps",
    .default_vocab_size = 256000,
    .default_hidden_size = 8192,
    .default_num_layers = 40,
    .default_num_heads = 64,
    .default_intermediate = 22528,
    .default_max_positions = 8192,
    .default_norm_eps = 1e-5,
    .default_tied = true,
    .default_bos = 5,
    .default_eos = 255001,
};

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
  DecoderFields fields = kCohereDecoder;
  fields.head_dim = "";
  ModelConfig model = read_cohere_common(config, fields);
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
                    harmless("head_dim", "it is hidden_size / num_attention_heads, always"),
                    harmless_if("use_qk_norm", "[false]", "there are no norms of q and k"),
                    harmless_if("rotary_pct", "[1.0, 1]", "whole heads are rotated"),
                    harmless("order_of_interleaved_layers", "layer_types and its pattern say it"),
                    harmless_if("layer_switch", "[4]", "layer_types and its pattern say it"),
                }),
                kCohereCommonFields);

constexpr auto kCohereNames = std::to_array<std::string_view>({"CohereForCausalLM"});
constexpr auto kCohereTypes = std::to_array<std::string_view>({"cohere"});
constexpr auto kCohereNames2 = std::to_array<std::string_view>({"Cohere2ForCausalLM"});
constexpr auto kCohereTypes2 = std::to_array<std::string_view>({"cohere2"});

constexpr auto kCohereTensors2 = join_tensors(kLlamaOuterTensors,
                                              kOneNormTensors,
                                              kLlamaAttentionTensors,
                                              kLlamaQkvBiasTensors,
                                              kLlamaOBiasTensors,
                                              kLlamaMlpTensors);

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

}  // namespace tgi
