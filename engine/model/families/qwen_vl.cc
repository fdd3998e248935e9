// Qwen2-VL, Qwen2.5-VL and Qwen3-VL, dense and with experts: multimodal checkpoints. Their text
// models are Qwen 2's and Qwen 3's blocks; what rotates by place in an image rotates text by its
// position. Source: models/qwen2_vl, qwen2_5_vl, qwen3_vl and qwen3_vl_moe in `transformers`.
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

ModelConfig read_qwen2_vl_text(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 152064,
                                                   .default_hidden_size = 8192,
                                                   .default_num_layers = 80,
                                                   .default_num_heads = 64,
                                                   .default_num_kv_heads = 8,
                                                   .default_intermediate = 29568,
                                                   .default_max_positions = 32768,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = 151643,
                                                   .default_eos = 151645});
  model.attention_bias = true;  // of q, k and v
  read_windows(config, {.by_switch = true, .default_first_layer = 80}, model);
  read_rope(config, model, {.default_theta = 1e6});
  return model;
}

ModelConfig read_qwen3_vl_text(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 151936,
                                                   .default_num_kv_heads = 32,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 22016,
                                                   .default_max_positions = 128000,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_rope(config, model, {.default_theta = 5e5});
  return model;
}

ModelConfig read_qwen3_vl_moe_text(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 151936,
                                                   .default_hidden_size = 2048,
                                                   .default_num_layers = 24,
                                                   .default_num_heads = 16,
                                                   .default_num_kv_heads = 16,
                                                   .default_intermediate = 5632,
                                                   .default_max_positions = 128000,
                                                   .default_tied = true,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_rope(config, model, {.default_theta = 5e5});
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .default_num_experts = 60,
                .default_top_k = 4,
                .default_intermediate = 1408,
                .normalises = true},
               model);
  read_sparse_steps(config, model);
  return model;
}

constexpr auto kQwen2VlTextFields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("use_sliding_window"),
                    read_or_null("sliding_window"),
                    read_or_null("max_window_layers"),
                    read_or_null("layer_types"),
                    harmless("rope_type", "rope_scaling says it"),
                    harmless_if("attention_bias", "[true]", "q, k and v have biases, o has none"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                }));

constexpr auto kQwen3VlTextFields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                    harmless_if("use_sliding_window", "[false]", "layers have no windows"),
                    harmless_if("sliding_window", "[]", "layers have no windows"),
                }));

constexpr auto kQwen3VlMoeTextFields =
    join_fields(kQwen3VlTextFields,
                std::to_array<KnownField>({
                    read("num_experts"),
                    read("num_experts_per_tok"),
                    read("moe_intermediate_size"),
                    read("decoder_sparse_step"),
                    read_or_null("mlp_only_layers"),
                    harmless_if("norm_topk_prob", "[true]", "weights of experts are normalised"),
                    harmless("router_aux_loss_coef", kTrainsRouter),
                    harmless("output_router_logits", kTrainsRouter),
                }));

constexpr auto kQwenVlFields = join_fields(
    kMultimodalFields, std::to_array<KnownField>({harmless("vision_token_id", kImages)}));

constexpr auto kQwen2VlTextNames =
    std::to_array<std::string_view>({"Qwen2VLTextModel", "Qwen2_5_VLTextModel"});
constexpr auto kQwen2VlTextTypes =
    std::to_array<std::string_view>({"qwen2_vl_text", "qwen2_5_vl_text"});
constexpr auto kQwen3VlTextNames = std::to_array<std::string_view>({"Qwen3VLTextModel"});
constexpr auto kQwen3VlTextTypes = std::to_array<std::string_view>({"qwen3_vl_text"});
constexpr auto kQwen3VlMoeTextNames = std::to_array<std::string_view>({"Qwen3VLMoeTextModel"});
constexpr auto kQwen3VlMoeTextTypes = std::to_array<std::string_view>({"qwen3_vl_moe_text"});
constexpr auto kQwen2VlNames = std::to_array<std::string_view>(
    {"Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration"});
constexpr auto kQwen2VlTypes = std::to_array<std::string_view>({"qwen2_vl", "qwen2_5_vl"});
constexpr auto kQwen3VlNames = std::to_array<std::string_view>({"Qwen3VLForConditionalGeneration"});
constexpr auto kQwen3VlTypes = std::to_array<std::string_view>({"qwen3_vl"});
constexpr auto kQwen3VlMoeNames =
    std::to_array<std::string_view>({"Qwen3VLMoeForConditionalGeneration"});
constexpr auto kQwen3VlMoeTypes = std::to_array<std::string_view>({"qwen3_vl_moe"});

constexpr auto kQwen2VlTextTensors = join_tensors(kLlamaOuterTensors,
                                                  kLlamaNormTensors,
                                                  kLlamaAttentionTensors,
                                                  kLlamaQkvBiasTensors,
                                                  kLlamaMlpTensors);
constexpr auto kQwen3VlTextTensors = join_tensors(kLlamaOuterTensors,
                                                  kLlamaNormTensors,
                                                  kLlamaAttentionTensors,
                                                  kLlamaQkvBiasTensors,
                                                  kLlamaOBiasTensors,
                                                  kQkNormTensors,
                                                  kLlamaMlpTensors);
constexpr auto kQwen3VlMoeTextTensors =
    join_tensors(kQwen3VlTextTensors,
                 std::to_array<TensorSpec>({
                     {Role::kRouter, "model.layers.{layer}.mlp.gate.weight", Dim::kExperts,
                      Dim::kHidden, Split::kNone, has_experts},
                     {.role = Role::kExpertGateUp,
                      .name = "model.layers.{layer}.mlp.experts.gate_up_proj",
                      .rows = Dim::kExpertGateUp,
                      .cols = Dim::kHidden,
                      .split = Split::kRows,
                      .only_if = has_experts,
                      .transposed = true,
                      .stacked = true},
                     {.role = Role::kExpertDown,
                      .name = "model.layers.{layer}.mlp.experts.down_proj",
                      .rows = Dim::kHidden,
                      .cols = Dim::kExpertIntermediate,
                      .split = Split::kColumns,
                      .only_if = has_experts,
                      .transposed = true,
                      .stacked = true},
                 }));
constexpr auto kQwen3VlMoeSeparateTensors = join_tensors(kQwen3VlTextTensors, kExpertTensors);

}  // namespace

extern const Architecture kQwen2VlText;
constexpr Architecture kQwen2VlText = {
    .names = kQwen2VlTextNames,
    .model_types = kQwen2VlTextTypes,
    .prefix = "model.",
    .read_config = read_qwen2_vl_text,
    .fields = kQwen2VlTextFields,
    .tensors = kQwen2VlTextTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kQwen3VlText;
constexpr Architecture kQwen3VlText = {
    .names = kQwen3VlTextNames,
    .model_types = kQwen3VlTextTypes,
    .prefix = "model.",
    .read_config = read_qwen3_vl_text,
    .fields = kQwen3VlTextFields,
    .tensors = kQwen3VlTextTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kQwen3VlMoeText;
constexpr Architecture kQwen3VlMoeText = {
    .names = kQwen3VlMoeTextNames,
    .model_types = kQwen3VlMoeTextTypes,
    .prefix = "model.",
    .read_config = read_qwen3_vl_moe_text,
    .fields = kQwen3VlMoeTextFields,
    .aliases = kExpertAliases,
    .tensors = kQwen3VlMoeTextTensors,
    .tensors_of_separate_experts = kQwen3VlMoeSeparateTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kQwen2Vl;
constexpr Architecture kQwen2Vl = multimodal_of(
    kQwen2VlNames, kQwen2VlTypes, R"({"model_type": "qwen2_vl_text"})", kQwenVlFields);

extern const Architecture kQwen3Vl;
constexpr Architecture kQwen3Vl = multimodal_of(
    kQwen3VlNames, kQwen3VlTypes, R"({"model_type": "qwen3_vl_text"})", kQwenVlFields);

extern const Architecture kQwen3VlMoe;
constexpr Architecture kQwen3VlMoe =
    multimodal_of(kQwen3VlMoeNames,
                  kQwen3VlMoeTypes,
                  R"({"model_type": "qwen3_vl_moe_text", "tie_word_embeddings": false})",
                  kQwenVlFields);

}  // namespace tgi
