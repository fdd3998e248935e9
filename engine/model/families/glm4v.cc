// GLM 4.1V, 4.5V, 4.6V and GLM-OCR: multimodal checkpoints. Their text models are those of GLM 4,
// with norms of the branches and maybe biases, and of GLM 4.5 with experts; what rotates by place
// in an image rotates text by its position. Source: models/glm4v, glm46v, glm4v_moe and glm_ocr in
// `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_glm4v_text(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.head_dim = "",
                                                   .default_vocab_size = 151552,
                                                   .default_num_layers = 40,
                                                   .default_num_kv_heads = 2,
                                                   .default_intermediate = 13696,
                                                   .default_max_positions = 32768,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = true;  // of q, k and v
  read_rope(config, model, {.interleaved = true, .takes_partial = true});
  return model;
}

ModelConfig read_glm_ocr_text(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 59392,
                                                   .default_hidden_size = 1024,
                                                   .default_num_layers = 16,
                                                   .default_num_heads = 16,
                                                   .default_num_kv_heads = 8,
                                                   .default_intermediate = 4096,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  read_rope(config, model, {.interleaved = true, .takes_partial = true});
  return model;
}

ModelConfig read_glm4v_moe_text(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 151424,
                                                   .default_num_layers = 46,
                                                   .default_num_heads = 96,
                                                   .default_num_kv_heads = 8,
                                                   .default_intermediate = 10944,
                                                   .default_max_positions = 65536,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", true);
  read_rope(config, model, {.takes_partial = true, .default_partial = 0.5});
  read_deepseek_experts(
      config, {.default_num_experts = 128, .default_top_k = 8, .default_intermediate = 1408},
      model);
  read_first_sparse_layer(config, 1, model);
  return model;
}

constexpr auto kGlm4vTextFields =
    join_fields(std::to_array<KnownField>({
                    harmless("head_dim", "it is hidden_size / num_attention_heads, always"),
                    harmless_if("attention_bias", "[true]", "q, k and v have biases, o has none"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                }),
                kDecoderFields);
constexpr auto kGlmOcrTextFields =
    join_fields(std::to_array<KnownField>({
                    harmless_if("attention_bias", "[false]", "there are no biases of attention"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                    harmless("num_nextn_predict_layers", kOnlyDrafts),
                }),
                kDecoderFields);
constexpr auto kGlm4vMoeTextFields =
    join_fields(kDecoderFields,
                kDeepSeekExpertFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    harmless_if("use_qk_norm", "[false]", "heads of q and k are not normed"),
                    harmless("num_nextn_predict_layers", kOnlyDrafts),
                }));

constexpr auto kGlm4vFields = join_fields(kMultimodalFields,
                                          std::to_array<KnownField>({
                                              harmless("image_start_token_id", kImages),
                                              harmless("image_end_token_id", kImages),
                                              harmless("video_start_token_id", kImages),
                                              harmless("video_end_token_id", kImages),
                                          }));

constexpr auto kGlm4vTextNames = std::to_array<std::string_view>({"Glm4vTextModel"});
constexpr auto kGlm4vTextTypes = std::to_array<std::string_view>({"glm4v_text"});
constexpr auto kGlmOcrTextNames = std::to_array<std::string_view>({"GlmOcrTextModel"});
constexpr auto kGlmOcrTextTypes = std::to_array<std::string_view>({"glm_ocr_text"});
constexpr auto kGlm4vMoeTextNames = std::to_array<std::string_view>({"Glm4vMoeTextModel"});
constexpr auto kGlm4vMoeTextTypes =
    std::to_array<std::string_view>({"glm4v_moe_text", "Glm4vMoe_text"});
constexpr auto kGlm4vNames = std::to_array<std::string_view>(
    {"Glm4vForConditionalGeneration", "Glm46VForConditionalGeneration"});
constexpr auto kGlm4vTypes = std::to_array<std::string_view>({"glm4v", "glm46v", "glmga"});
constexpr auto kGlmOcrNames = std::to_array<std::string_view>({"GlmOcrForConditionalGeneration"});
constexpr auto kGlmOcrTypes = std::to_array<std::string_view>({"glm_ocr"});
constexpr auto kGlm4vMoeNames =
    std::to_array<std::string_view>({"Glm4vMoeForConditionalGeneration"});
constexpr auto kGlm4vMoeTypes = std::to_array<std::string_view>({"glm4v_moe"});

constexpr auto kGlmOcrTextTensors = join_tensors(
    kLlamaOuterTensors,
    kLlamaNormTensors,
    kLlamaAttentionTensors,
    kFusedMlpTensors,
    std::to_array<TensorSpec>({
        {Role::kAttentionPostNorm, "model.layers.{layer}.post_self_attn_layernorm.weight",
         Dim::kOne, Dim::kHidden},
        {Role::kMlpPostNorm, "model.layers.{layer}.post_mlp_layernorm.weight", Dim::kOne,
         Dim::kHidden},
    }));
constexpr auto kGlm4vTextTensors = join_tensors(kGlmOcrTextTensors, kLlamaQkvBiasTensors);
constexpr auto kGlm4vMoeTextTensors = join_tensors(kLlamaOuterTensors,
                                                   kLlamaNormTensors,
                                                   kLlamaAttentionTensors,
                                                   kLlamaQkvBiasTensors,
                                                   kLlamaMlpTensors,
                                                   kExpertTensors,
                                                   kDeepSeekExpertTensors);

}  // namespace

extern const Architecture kGlm4vText;
constexpr Architecture kGlm4vText = {
    .names = kGlm4vTextNames,
    .model_types = kGlm4vTextTypes,
    .prefix = "model.",
    .read_config = read_glm4v_text,
    .fields = kGlm4vTextFields,
    .tensors = kGlm4vTextTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kGlmOcrText;
constexpr Architecture kGlmOcrText = {
    .names = kGlmOcrTextNames,
    .model_types = kGlmOcrTextTypes,
    .prefix = "model.",
    .read_config = read_glm_ocr_text,
    .fields = kGlmOcrTextFields,
    .tensors = kGlmOcrTextTensors,
    .ignored = kRotaryTables,
    .ignores_layer_after_last = true,
};

extern const Architecture kGlm4vMoeText;
constexpr Architecture kGlm4vMoeText = {
    .names = kGlm4vMoeTextNames,
    .model_types = kGlm4vMoeTextTypes,
    .prefix = "model.",
    .read_config = read_glm4v_moe_text,
    .fields = kGlm4vMoeTextFields,
    .aliases = kDeepSeekExpertAliases,
    .tensors = kGlm4vMoeTextTensors,
    .ignored = kRotaryTables,
    .ignores_layer_after_last = true,
};

extern const Architecture kGlm4v, kGlmOcr, kGlm4vMoe;
constexpr Architecture kGlm4v =
    multimodal_of(kGlm4vNames, kGlm4vTypes, R"({"model_type": "glm4v_text"})", kGlm4vFields);
constexpr Architecture kGlmOcr =
    multimodal_of(kGlmOcrNames, kGlmOcrTypes, R"({"model_type": "glm_ocr_text"})", kGlm4vFields);
constexpr Architecture kGlm4vMoe =
    multimodal_of(kGlm4vMoeNames,
                  kGlm4vMoeTypes,
                  R"({"model_type": "glm4v_moe_text", "head_dim": 128})",
                  kGlm4vFields);

}  // namespace tgi
