// ModernBERT's decoder (Ettin): ModernBERT's block with separate q, k and v and tokens that see
// only those before them, and a matrix, an activation and a norm before the head.
// Source: models/modernbert_decoder in `transformers`; https://arxiv.org/abs/2507.11412.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kEttinDecoder = {
    .num_kv_heads = "",
    .head_dim = "",
    .norm_eps = "norm_eps",
    .activation = "hidden_activation",
    .default_vocab_size = 50368,
    .default_hidden_size = 768,
    .default_num_layers = 22,
    .default_num_heads = 12,
    .default_intermediate = 1152,
    .default_max_positions = 8192,
    .default_norm_eps = 1e-5,
    .default_activation = "gelu",
    .default_tied = true,
    .default_bos = 50281,
    .default_eos = 50282,
};

// Files that the class wrote name the window itself, which then counts; others its double.
void read_ettin_windows(const JsonReader& config, ModelConfig& model) {
  const int32_t width = read_size(config, "local_attention", 128, kMaxPositions);
  const int64_t pattern = read_size(config, "global_attn_every_n_layers", 3, kMaxLayers);
  if (width < 2 && !config.has("sliding_window")) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected 2 or more, twice the tokens of a window, got {}",
                            config.path_of("local_attention"), width));
  }
  read_windows(config, {.default_window = width / 2, .null_is_no_window = false}, model);
  if (config.has("layer_types")) return;
  for (int64_t i = 0; i < model.num_layers; i += pattern) {
    model.layers[static_cast<size_t>(i)].sliding_window = 0;
  }
}

ModelConfig read_ettin(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kEttinDecoder);
  model.norm_kind = NormKind::kLayer;
  model.norms_have_biases = config.boolean_or("norm_bias", false);
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  model.head_dense_bias = config.boolean_or("classifier_bias", false);
  model.lm_head_bias = config.boolean_or("decoder_bias", true);
  const std::string activation = config.string_or("classifier_activation", "gelu");
  if (activation != "gelu") {
    throw Error(Code::kUnsupported,
                fmt::format("{}: '{}' is not supported; known is gelu",
                            config.path_of("classifier_activation"), activation));
  }
  read_ettin_windows(config, model);
  read_rope_by_window(config, model,
                      {.default_theta = 10000.0,
                       .theta_name = "local_rope_theta",
                       .layer_type = "sliding_attention"},
                      {.default_theta = 160000.0,
                       .theta_name = "global_rope_theta",
                       .layer_type = "full_attention"});
  return model;
}

constexpr bool draws_tokens(const ModelConfig& config, int32_t /*layer*/) {
  return !config.gives_vectors;
}
constexpr bool has_head_dense_bias(const ModelConfig& config, int32_t /*layer*/) {
  return config.head_dense_bias && !config.gives_vectors;
}
constexpr bool has_head_norm_bias(const ModelConfig& config, int32_t /*layer*/) {
  return config.norms_have_biases && !config.gives_vectors;
}
constexpr bool has_lm_head_bias(const ModelConfig& config, int32_t /*layer*/) {
  return config.lm_head_bias && !config.gives_vectors;
}

constexpr std::string_view kOfMasks = "is of encoders, which fill masks";

constexpr auto kEttinFields = std::to_array<KnownField>({
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
    read("decoder_bias"),
    read("classifier_bias"),
    read("classifier_activation"),
    read("local_attention"),
    read("sliding_window"),
    read_or_null("layer_types"),
    read("global_attn_every_n_layers"),
    read("global_rope_theta"),
    read("local_rope_theta"),
    read_or_null("rope_parameters"),
    read_or_null("rope_scaling"),
    read_or_null("tie_word_embeddings"),
    harmless_if("is_causal", "[true]", "no token sees one behind it"),
    harmless("classifier_pooling", "a text is classified by its last token"),
    harmless("sparse_prediction", kOfMasks),
    harmless("sparse_pred_ignore_index", kOfMasks),
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

constexpr auto kEttinNames = std::to_array<std::string_view>({"ModernBertDecoderForCausalLM"});
constexpr auto kEttinTypes = std::to_array<std::string_view>({"modernbert-decoder"});

constexpr auto kEttinTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "model.embeddings.tok_embeddings.weight", Dim::kVocab, Dim::kHidden},
    {Role::kEmbeddingNorm, "model.embeddings.norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kEmbeddingNormBias, "model.embeddings.norm.bias", Dim::kOne, Dim::kHidden, Split::kNone,
     has_norm_bias},
    {Role::kFinalNorm, "model.final_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "model.final_norm.bias", Dim::kOne, Dim::kHidden, Split::kNone,
     has_norm_bias},
    {Role::kHeadDense, "lm_head.dense.weight", Dim::kHidden, Dim::kHidden, Split::kNone,
     draws_tokens},
    {Role::kHeadDenseBias, "lm_head.dense.bias", Dim::kOne, Dim::kHidden, Split::kNone,
     has_head_dense_bias},
    {Role::kHeadNorm, "lm_head.norm.weight", Dim::kOne, Dim::kHidden, Split::kNone, draws_tokens},
    {Role::kHeadNormBias, "lm_head.norm.bias", Dim::kOne, Dim::kHidden, Split::kNone,
     has_head_norm_bias},
    {Role::kLmHead, "decoder.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kLmHeadBias, "decoder.bias", Dim::kOne, Dim::kVocab, Split::kNone, has_lm_head_bias},
    {Role::kAttentionNorm, "model.layers.{layer}.attn_norm.weight", Dim::kOne, Dim::kHidden,
     Split::kNone, is_not_first},
    {Role::kAttentionNormBias, "model.layers.{layer}.attn_norm.bias", Dim::kOne, Dim::kHidden,
     Split::kNone, has_later_norm_bias},
    {Role::kQ, "model.layers.{layer}.attn.q_proj.weight", Dim::kQ, Dim::kHidden, Split::kRows},
    {Role::kK, "model.layers.{layer}.attn.k_proj.weight", Dim::kKv, Dim::kHidden, Split::kRows},
    {Role::kV, "model.layers.{layer}.attn.v_proj.weight", Dim::kKv, Dim::kHidden, Split::kRows},
    {Role::kQBias, "model.layers.{layer}.attn.q_proj.bias", Dim::kOne, Dim::kQ, Split::kRows,
     has_attention_bias},
    {Role::kKBias, "model.layers.{layer}.attn.k_proj.bias", Dim::kOne, Dim::kKv, Split::kRows,
     has_attention_bias},
    {Role::kVBias, "model.layers.{layer}.attn.v_proj.bias", Dim::kOne, Dim::kKv, Split::kRows,
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

// What classifies has the same layers before its scores, under another name.
constexpr auto kEttinClassifier = std::to_array<HeadLayer>({
    {.weight = "head.dense.weight",
     .bias = "head.dense.bias",
     .activation = HeadActivation::kGelu,
     .norm = "head.norm.weight",
     .norm_bias = "head.norm.bias"},
    {.weight = "classifier.weight", .bias = "classifier.bias"},
});
constexpr auto kEttinHeads = std::to_array<HeadSpec>({
    {Task::kClassify, HeadInput::kLast, kEttinClassifier},
});

}  // namespace

extern const Architecture kModernBertDecoder;
constexpr Architecture kModernBertDecoder = {
    .names = kEttinNames,
    .model_types = kEttinTypes,
    .prefix = "model.",
    .read_config = read_ettin,
    .fields = kEttinFields,
    .tensors = kEttinTensors,
    .ignored = kRotaryTables,
    .heads = kEttinHeads,
};

}  // namespace tgi
