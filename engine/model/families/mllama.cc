// Llama 3.2 Vision: a multimodal checkpoint around Llama's block. Between its layers stand some
// that only see images, and do nothing where there are none. Source: models/mllama in
// `transformers`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr const char* kCrossLayers = "cross_attention_layers";

void make_idle(LayerPlan& layer) {
  layer.has_attention = false;
  layer.mlp = MlpKind::kNone;
}

// Numbers of layers; the class writes those of its largest model into the files of small ones too.
void read_cross_layers(const JsonReader& config, ModelConfig& model) {
  const Json fallback = {3, 8, 13, 18, 23, 28, 33, 38};
  const Json list = config.has(kCrossLayers) ? config.json().at(kCrossLayers) : fallback;
  if (!list.is_array()) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: expected a list of layers, got {}",
                                                    config.path_of(kCrossLayers), list.dump()));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_number_integer() || list[i] < 0 || list[i] >= kMaxLayers) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}[{}]: expected the number of a layer, below {}, got {}",
                              config.path_of(kCrossLayers), i, kMaxLayers, list[i].dump()));
    }
    if (list[i] < model.num_layers) make_idle(model.layers[list[i].get<size_t>()]);
  }
  if (std::ranges::none_of(model.layers, &LayerPlan::has_attention)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: has all of the {} layers, expected one at least that reads text",
                            config.path_of(kCrossLayers), model.num_layers));
  }
}

ModelConfig read_mllama_text(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.head_dim = "",
                                                   .default_vocab_size = 128256,
                                                   .default_num_layers = 40,
                                                   .default_num_kv_heads = 8,
                                                   .default_intermediate = 14336,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = 128000,
                                                   .default_eos = 128001});
  read_rope(config, model, {.default_theta = 500000.0});
  model.tied_embeddings = false;
  model.unread_rows = 8;
  read_cross_layers(config, model);
  return model;
}

constexpr auto kMllamaTextFields =
    join_fields(std::to_array<KnownField>({
                    kNeverTied,
                    harmless_if("head_dim", "[]", "hidden_size and num_attention_heads say it"),
                    read_or_null("cross_attention_layers"),
                    harmless("dropout", kOnlyTraining),
                    harmless_if("attention_bias", "[false]", "there are no biases"),
                    harmless_if("mlp_bias", "[false]", "there are no biases"),
                }),
                kDecoderFields);
constexpr auto kMllamaFields =
    join_fields(std::to_array<KnownField>({kNeverTied}), kMultimodalFields);

constexpr auto kMllamaTextNames = std::to_array<std::string_view>({"MllamaForCausalLM"});
constexpr auto kMllamaTextTypes = std::to_array<std::string_view>({"mllama_text_model"});
constexpr auto kMllamaNames = std::to_array<std::string_view>({"MllamaForConditionalGeneration"});
constexpr auto kMllamaTypes = std::to_array<std::string_view>({"mllama"});

constexpr bool sees_text(const ModelConfig& config, int32_t layer) {
  return config.layers[static_cast<size_t>(layer)].has_attention;
}

constexpr auto kMllamaTextTensors = join_tensors(
    kLlamaAttentionTensors,
    kLlamaMlpTensors,
    std::to_array<TensorSpec>({
        {Role::kTokenEmbedding, "model.embed_tokens.weight", Dim::kImagesVocab, Dim::kHidden},
        {Role::kFinalNorm, "model.norm.weight", Dim::kOne, Dim::kHidden},
        {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden},
        {Role::kAttentionNorm, "model.layers.{layer}.input_layernorm.weight", Dim::kOne,
         Dim::kHidden, Split::kNone, sees_text},
        {Role::kMlpNorm, "model.layers.{layer}.post_attention_layernorm.weight", Dim::kOne,
         Dim::kHidden, Split::kNone, sees_text},
    }));

}  // namespace

extern const Architecture kMllamaText, kMllama;
constexpr Architecture kMllamaText = {
    .names = kMllamaTextNames,
    .model_types = kMllamaTextTypes,
    .prefix = "model.",
    .read_config = read_mllama_text,
    .fields = kMllamaTextFields,
    .tensors = kMllamaTextTensors,
    .ignored = kRotaryTables,
};
constexpr Architecture kMllama = multimodal_of(
    kMllamaNames, kMllamaTypes, R"({"model_type": "mllama_text_model"})", kMllamaFields);

}  // namespace tgi
