// ModernBERT: rotated positions, norms before the branches, gated MLPs, and layers that see only
// what is near between those that see all.
// Sources: models/modernbert in `transformers`, https://arxiv.org/abs/2412.13663.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr std::string_view kMasks = "is of the head that fills masks, which is not used";

constexpr auto kModernBertFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("intermediate_size"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read("hidden_activation"),
    read("max_position_embeddings"),
    read("norm_eps"),
    read("norm_bias"),
    read("attention_bias"),
    read("mlp_bias"),
    read("local_attention"),
    read_or_null("layer_types"),
    read_or_null("global_attn_every_n_layers"),
    read_or_null("global_rope_theta"),
    read_or_null("local_rope_theta"),
    read_or_null("rope_parameters"),
    read_or_null("rope_scaling"),
    read("classifier_pooling"),
    read("classifier_activation"),
    harmless("is_causal", "all tokens see each other"),
    harmless("classifier_bias", "the weights have such a bias or none"),
    harmless("decoder_bias", kMasks),
    harmless("sparse_prediction", kMasks),
    harmless("sparse_pred_ignore_index", kMasks),
    harmless("tie_word_embeddings", kMasks),
    harmless("mlp_dropout", kOnlyTraining),
    harmless("initializer_cutoff_factor", kOnlyTraining),
    harmless("deterministic_flash_attn", kSameSums),
    harmless("reference_compile", kSameSums),
    harmless("repad_logits_with_grad", kSameSums),
    harmless("cls_token_id", "the tokenizer's own files say it"),
    harmless("layer_norm_eps", "norm_eps is what counts"),
    harmless_if("position_embedding_type",
                R"(["absolute", "rope", "sans_pos"])",
                "heads are rotated, whatever it says"),
});

void read_spans(const JsonReader& config, ModelConfig& model) {
  const int32_t width = read_size(config, "local_attention", 128, kMaxPositions);
  const int32_t window = width / 2 + 1;  // so many tokens to each side, itself included
  const int64_t pattern = read_size(config, "global_attn_every_n_layers", 3, kMaxLayers);
  const std::vector<std::string> types = config.strings_or_empty("layer_types");
  if (!types.empty() && types.size() != model.layers.size()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected {} entries, one per layer, got {}",
                            config.path_of("layer_types"), model.layers.size(), types.size()));
  }
  for (size_t i = 0; i < model.layers.size(); ++i) {
    bool sees_all = static_cast<int64_t>(i) % pattern == 0;
    if (!types.empty()) {
      sees_all = types[i] == "full_attention";
      if (!sees_all && types[i] != "sliding_attention") {
        throw Error(Code::kUnsupported,
                    fmt::format("{}[{}]: '{}' is not supported; known are full_attention, "
                                "sliding_attention",
                                config.path_of("layer_types"), i, types[i]));
      }
    }
    if (!sees_all) model.layers[i].sliding_window = window;
  }
}

ModelConfig read_modernbert(const JsonReader& config) {
  DecoderFields fields = kBertDecoderFields;
  fields.norm_eps = "norm_eps";
  fields.activation = "hidden_activation";
  fields.default_vocab_size = 50368;
  fields.default_num_layers = 22;
  fields.default_intermediate = 1152;
  fields.default_max_positions = 8192;
  fields.default_norm_eps = 1e-5;
  ModelConfig model = read_decoder_config(config, fields);
  model.norm_kind = NormKind::kLayer;
  model.is_causal = false;
  model.norms_have_biases = config.boolean_or("norm_bias", false);
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_spans(config, model);
  read_rope_by_window(config, model,
                      {.default_theta = 10000.0,
                       .theta_name = "local_rope_theta",
                       .layer_type = "sliding_attention"},
                      {.default_theta = 160000.0,
                       .theta_name = "global_rope_theta",
                       .layer_type = "full_attention"});
  const std::string pooling = config.string_or("classifier_pooling", "cls");
  if (pooling != "cls" && pooling != "mean") {
    throw Error(Code::kUnsupported, fmt::format("{}: '{}' is not supported; known are cls, mean",
                                                config.path_of("classifier_pooling"), pooling));
  }
  model.head_input = pooling == "mean" ? HeadInput::kMean : HeadInput::kFirst;
  const std::string activation = config.string_or("classifier_activation", "gelu");
  if (activation != "gelu") {
    throw Error(Code::kUnsupported,
                fmt::format("{}: '{}' is not supported; known is gelu",
                            config.path_of("classifier_activation"), activation));
  }
  return model;
}

constexpr auto kModernBertNames = std::to_array<std::string_view>({"ModernBertModel"});
constexpr auto kModernBertTypes = std::to_array<std::string_view>({"modernbert"});
constexpr auto kModernBertIgnored = std::to_array<std::string_view>(
    {"head.dense.weight", "head.dense.bias", "head.norm.weight", "head.norm.bias", "decoder.*"});

constexpr auto kModernBertTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "model.embeddings.tok_embeddings.weight", Dim::kVocab, Dim::kHidden},
    {Role::kEmbeddingNorm, "model.embeddings.norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kEmbeddingNormBias, "model.embeddings.norm.bias", Dim::kOne, Dim::kHidden, Split::kNone,
     has_norm_bias},
    {Role::kFinalNorm, "model.final_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "model.final_norm.bias", Dim::kOne, Dim::kHidden, Split::kNone,
     has_norm_bias},
    {Role::kAttentionNorm, "model.layers.{layer}.attn_norm.weight", Dim::kOne, Dim::kHidden,
     Split::kNone, is_not_first},
    {Role::kAttentionNormBias, "model.layers.{layer}.attn_norm.bias", Dim::kOne, Dim::kHidden,
     Split::kNone, has_later_norm_bias},
    {Role::kQkv, "model.layers.{layer}.attn.Wqkv.weight", Dim::kQkv, Dim::kHidden, Split::kRows},
    {Role::kQkvBias, "model.layers.{layer}.attn.Wqkv.bias", Dim::kOne, Dim::kQkv, Split::kRows,
     has_attention_bias},
    {Role::kO, "model.layers.{layer}.attn.Wo.weight", Dim::kHidden, Dim::kQ, Split::kColumns},
    {Role::kOBias, "model.layers.{layer}.attn.Wo.bias", Dim::kOne, Dim::kHidden, Split::kColumns,
     has_attention_bias},
    {Role::kMlpNorm, "model.layers.{layer}.mlp_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNormBias, "model.layers.{layer}.mlp_norm.bias", Dim::kOne, Dim::kHidden,
     Split::kNone, has_norm_bias},
    {Role::kGateUp, "model.layers.{layer}.mlp.Wi.weight", Dim::kGateUp, Dim::kHidden, Split::kRows},
    {Role::kGateUpBias, "model.layers.{layer}.mlp.Wi.bias", Dim::kOne, Dim::kGateUp, Split::kRows,
     has_mlp_bias},
    {Role::kDown, "model.layers.{layer}.mlp.Wo.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
    {Role::kDownBias, "model.layers.{layer}.mlp.Wo.bias", Dim::kOne, Dim::kHidden, Split::kColumns,
     has_mlp_bias},
});

constexpr HeadLayer kDense = {.weight = "head.dense.weight",
                              .bias = "head.dense.bias",
                              .activation = HeadActivation::kGelu,
                              .norm = "head.norm.weight",
                              .norm_bias = "head.norm.bias"};
constexpr auto kModernBertClassifier = std::to_array<HeadLayer>({
    kDense,
    {.weight = "classifier.weight", .bias = "classifier.bias"},
});
constexpr auto kModernBertHeads = std::to_array<HeadSpec>({
    {Task::kClassify, HeadInput::kAsConfigured, kModernBertClassifier},
    {Task::kClassifyTokens, HeadInput::kEach, kModernBertClassifier},
});

}  // namespace

extern const Architecture kModernBert;
constexpr Architecture kModernBert = {
    .names = kModernBertNames,
    .model_types = kModernBertTypes,
    .prefix = "model.",
    .read_config = read_modernbert,
    .fields = kModernBertFields,
    .tensors = kModernBertTensors,
    .ignored = kModernBertIgnored,
    .heads = kModernBertHeads,
};

}  // namespace tgi
