// Gemma 1, 2 and 3 (text): Llama's block with weights of norms stored less one, a gated gelu and a
// multiplied embedding. The second norms the branches too and caps scores and logits; the third
// norms heads of q and k, and rotates by another base where there is a window. VaultGemma is the
// second without the norms behind the branches.
// Source: models/gemma, models/gemma2, models/gemma3 and models/vaultgemma in `transformers`.
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kGemmaDecoder = {
    .default_vocab_size = 256000,
    .default_hidden_size = 3072,
    .default_num_layers = 28,
    .default_num_heads = 16,
    .default_num_kv_heads = 16,
    .default_head_dim = 256,
    .default_intermediate = 24576,
    .default_max_positions = 8192,
    .default_activation = "gelu_pytorch_tanh",
    .default_tied = true,
    .default_bos = 2,
    .default_eos = 1,
};

constexpr DecoderFields kDecoder2 = {
    .activation = "hidden_activation",
    .default_vocab_size = 256000,
    .default_hidden_size = 2304,
    .default_num_layers = 26,
    .default_num_heads = 8,
    .default_num_kv_heads = 4,
    .default_head_dim = 256,
    .default_intermediate = 9216,
    .default_max_positions = 8192,
    .default_activation = "gelu_pytorch_tanh",
    .default_tied = true,
    .default_bos = 2,
    .default_eos = 1,
};

ModelConfig read_gemma_common(const JsonReader& config, const DecoderFields& fields) {
  ModelConfig model = read_decoder_config(config, fields);
  model.norm_weight_offset = 1.0F;
  model.embedding_multiplier = std::sqrt(static_cast<float>(model.hidden_size));
  model.attention_bias = config.boolean_or("attention_bias", false);
  return model;
}

// The published files of the first say "gelu" and mean its approximation; hidden_activation came
// later, to be taken by its word.
ModelConfig read_gemma(const JsonReader& config) {
  DecoderFields fields = kGemmaDecoder;
  if (config.has("hidden_activation")) fields.activation = "hidden_activation";
  ModelConfig model = read_gemma_common(config, fields);
  const bool is_old = fields.activation == kGemmaDecoder.activation;
  if (is_old && model.activation == Activation::kGelu) model.activation = Activation::kGeluTanh;
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

void read_scale(const JsonReader& config, ModelConfig& model) {
  model.attention_scale = 1.0F / std::sqrt(read_positive(config, "query_pre_attn_scalar", 256.0));
}

void read_logit_softcap(const JsonReader& config,
                        std::optional<double> fallback,
                        ModelConfig& model) {
  model.logit_softcap =
      read_optional_positive(config, "final_logit_softcapping", fallback).value_or(0.0F);
}

ModelConfig read_gemma_2(const JsonReader& config) {
  ModelConfig model = read_gemma_common(config, kDecoder2);
  read_scale(config, model);
  model.attention_softcap =
      read_optional_positive(config, "attn_logit_softcapping", 50.0).value_or(0.0F);
  read_logit_softcap(config, 30.0, model);
  read_windows(config, {.default_pattern = 2, .null_is_no_window = false}, model);
  read_rope(config, model);
  return model;
}

// EmbeddingGemma: half of the window is to each side of a token.
void see_both_sides(ModelConfig& model) {
  model.is_causal = false;
  for (LayerPlan& layer : model.layers) {
    if (layer.sliding_window > 0) layer.sliding_window = layer.sliding_window / 2 + 1;
  }
}

ModelConfig read_gemma_3(const JsonReader& config) {
  DecoderFields fields = kDecoder2;
  fields.default_vocab_size = 262208;
  fields.default_max_positions = 131072;
  ModelConfig model = read_gemma_common(config, fields);
  read_scale(config, model);
  read_logit_softcap(config, {}, model);
  read_windows(
      config,
      {.default_pattern = 6, .pattern_name = "sliding_window_pattern", .null_is_no_window = false},
      model);
  if (config.boolean_or("use_bidirectional_attention", false)) see_both_sides(model);
  read_rope_by_window(
      config, model,
      {.theta_name = "rope_local_base_freq",
       .layer_type = "sliding_attention",
       .is_scaled = false,
       .widens_context = false},
      {.default_theta = 1e6, .layer_type = "full_attention", .widens_context = false});
  return model;
}

constexpr std::string_view kBidirectional = "a token never sees those after it";

constexpr auto kGemmaCommonFields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                    harmless_if("use_bidirectional_attention", "[false]", kBidirectional),
                }));

constexpr auto kGemmaFields = join_fields(kGemmaCommonFields,
                                          std::to_array<KnownField>({
                                              read_or_null("hidden_activation"),
                                              read_or_null("layer_types"),
                                              read_or_null("sliding_window"),
                                              read_or_null("use_sliding_window"),
                                          }));

constexpr auto kGemmaFields2 = join_fields(std::to_array<KnownField>({
                                               harmless("hidden_act", "hidden_activation says it"),
                                               read("hidden_activation"),
                                               read("query_pre_attn_scalar"),
                                               read_or_null("attn_logit_softcapping"),
                                               read_or_null("final_logit_softcapping"),
                                               read_or_null("sliding_window"),
                                               read_or_null("layer_types"),
                                           }),
                                           kGemmaCommonFields);

constexpr auto kGemmaFields3 =
    join_fields(std::to_array<KnownField>({
                    read_or_null("use_bidirectional_attention"),
                    read("rope_local_base_freq"),
                    read_or_null("sliding_window_pattern"),
                    harmless("_sliding_window_pattern", "layer_types stands beside it"),
                    harmless("attn_logit_softcapping", "the model has no cap of scores"),
                }),
                kGemmaFields2);

constexpr auto kGemmaNames = std::to_array<std::string_view>({"GemmaForCausalLM"});
constexpr auto kGemmaTypes = std::to_array<std::string_view>({"gemma"});
constexpr auto kGemmaNames2 = std::to_array<std::string_view>({"Gemma2ForCausalLM"});
constexpr auto kGemmaTypes2 = std::to_array<std::string_view>({"gemma2"});
constexpr auto kVaultGemmaNames = std::to_array<std::string_view>({"VaultGemmaForCausalLM"});
constexpr auto kVaultGemmaTypes = std::to_array<std::string_view>({"vaultgemma"});
constexpr auto kGemmaNames3 =
    std::to_array<std::string_view>({"Gemma3ForCausalLM", "Gemma3TextModel"});
constexpr auto kGemmaTypes3 = std::to_array<std::string_view>({"gemma3_text"});
constexpr auto kMultimodalNames =
    std::to_array<std::string_view>({"Gemma3ForConditionalGeneration"});
constexpr auto kMultimodalTypes = std::to_array<std::string_view>({"gemma3"});

constexpr auto kGemmaBlockTensors = join_tensors(kLlamaOuterTensors,
                                                 kLlamaAttentionTensors,
                                                 kLlamaQkvBiasTensors,
                                                 kLlamaOBiasTensors,
                                                 kLlamaMlpTensors);
constexpr auto kGemmaTensors = join_tensors(kGemmaBlockTensors, kLlamaNormTensors);
constexpr auto kGemmaTensors2 = join_tensors(kGemmaBlockTensors, kFourNormTensors);
constexpr auto kVaultGemmaTensors =
    join_tensors(kGemmaBlockTensors,
                 kOneNormTensors,
                 std::to_array<TensorSpec>({
                     {Role::kMlpNorm, "model.layers.{layer}.pre_feedforward_layernorm.weight",
                      Dim::kOne, Dim::kHidden},
                 }));
constexpr auto kTensors3 = join_tensors(kGemmaTensors2, kQkNormTensors);

}  // namespace

extern const Architecture kGemma;
constexpr Architecture kGemma = {
    .names = kGemmaNames,
    .model_types = kGemmaTypes,
    .prefix = "model.",
    .read_config = read_gemma,
    .fields = kGemmaFields,
    .tensors = kGemmaTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kGemma2;
constexpr Architecture kGemma2 = {
    .names = kGemmaNames2,
    .model_types = kGemmaTypes2,
    .prefix = "model.",
    .read_config = read_gemma_2,
    .fields = kGemmaFields2,
    .tensors = kGemmaTensors2,
    .ignored = kRotaryTables,
};

extern const Architecture kVaultGemma;
constexpr Architecture kVaultGemma = {
    .names = kVaultGemmaNames,
    .model_types = kVaultGemmaTypes,
    .prefix = "model.",
    .read_config = read_gemma_2,
    .fields = kGemmaFields2,
    .tensors = kVaultGemmaTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kGemma3;
constexpr Architecture kGemma3 = {
    .names = kGemmaNames3,
    .model_types = kGemmaTypes3,
    .prefix = "model.",
    .read_config = read_gemma_3,
    .fields = kGemmaFields3,
    .tensors = kTensors3,
    .ignored = kRotaryTables,
};

extern const Architecture kGemma3Multimodal;
constexpr Architecture kGemma3Multimodal =
    multimodal_of(kMultimodalNames, kMultimodalTypes, R"({"model_type": "gemma3_text"})");

}  // namespace tgi
