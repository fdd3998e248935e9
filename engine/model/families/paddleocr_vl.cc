// PaddleOCR-VL: a multimodal checkpoint that reads pages. Its text model is ERNIE 4.5's with halves
// of a head rotated. Source: models/paddleocr_vl in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_paddleocr_text(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 103424,
                                                   .default_hidden_size = 1024,
                                                   .default_num_layers = 18,
                                                   .default_num_heads = 16,
                                                   .default_num_kv_heads = 2,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 3072,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5,
                                                   .default_tied = true});
  model.attention_bias = config.boolean_or("use_bias", false);
  model.mlp_bias = model.attention_bias;
  read_rope(config, model, {.default_theta = 500000.0});
  return model;
}

constexpr std::string_view kPaddleOneBlock = "there is one kind of block";

constexpr auto kPaddleOcrTextFields = join_fields(
    kDecoderFields,
    std::to_array<KnownField>({
        read_or_null("use_bias"),
        harmless_if("attention_bias", "[false]", "use_bias says which biases there are"),
        harmless_if("mlp_bias", "[false]", "use_bias says which biases there are"),
        harmless_if("sliding_window", "[]", "layers have no windows"),
        harmless_if("rope_is_neox_style", "[true]", "halves of a head are rotated"),
        harmless_if("use_3d_rope", "[true]", "text has one position in all three"),
        harmless_if("compression_ratio", "[1]", "positions are not compressed"),
        harmless_if("weight_share_add_bias", "[true]", kPaddleOneBlock),
        harmless("use_flash_attention", "says which kernel computes the same"),
        harmless("max_sequence_length", kOnlyTraining),
        harmless("ignored_index", kOnlyTraining),
    }));

constexpr auto kPaddleOcrTextNames = std::to_array<std::string_view>({"PaddleOCRTextModel"});
constexpr auto kPaddleOcrTextTypes = std::to_array<std::string_view>({"paddleocr_vl_text"});
constexpr auto kPaddleOcrNames =
    std::to_array<std::string_view>({"PaddleOCRVLForConditionalGeneration"});
constexpr auto kPaddleOcrTypes = std::to_array<std::string_view>({"paddleocr_vl"});

constexpr auto kPaddleOcrTextTensors = join_tensors(kLlamaOuterTensors,
                                                    kLlamaNormTensors,
                                                    kLlamaAttentionTensors,
                                                    kLlamaQkvBiasTensors,
                                                    kLlamaOBiasTensors,
                                                    kLlamaMlpTensors,
                                                    kLlamaMlpBiasTensors);

constexpr auto kPaddleOcrIgnored =
    std::to_array<std::string_view>({"visual.*", "projector.*", "mlp_AR.*"});

}  // namespace

extern const Architecture kPaddleOcrText, kPaddleOcr;
constexpr Architecture kPaddleOcrText = {
    .names = kPaddleOcrTextNames,
    .model_types = kPaddleOcrTextTypes,
    .prefix = "model.",
    .read_config = read_paddleocr_text,
    .fields = kPaddleOcrTextFields,
    .tensors = kPaddleOcrTextTensors,
    .ignored = kRotaryTables,
};
constexpr Architecture kPaddleOcr =
    multimodal_of(kPaddleOcrNames,
                  kPaddleOcrTypes,
                  R"({"model_type": "paddleocr_vl_text", "tie_word_embeddings": true})",
                  kMultimodalFields,
                  kPaddleOcrIgnored);

}  // namespace tgi
