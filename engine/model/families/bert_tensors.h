// What BERT's encoder and those that spell it alike have in common: norms behind each branch, the
// last of which is the model's. For the forward pass the norm behind a branch stands before the
// next one, and the stream goes on from it.
#pragma once

#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {

inline constexpr auto kBertFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read("intermediate_size"),
    read("hidden_act"),
    read("max_position_embeddings"),
    read("layer_norm_eps"),
    harmless("pooler_fc_size", "is of another class than those of one text or pair"),
    harmless("pooler_num_attention_heads", "is of another class than those of one text or pair"),
    harmless("pooler_num_fc_layers", "is of another class than those of one text or pair"),
    harmless("pooler_size_per_head", "is of another class than those of one text or pair"),
    harmless("pooler_type", "is of another class than those of one text or pair"),
    harmless("directionality", "all tokens see each other"),
    harmless("tie_word_embeddings", "is of the head that fills masks, which is not used"),
    harmless("is_causal", "all tokens see each other"),
    harmless_if("is_decoder", "[false]", "all tokens see each other"),
    harmless_if("position_embedding_type",
                R"(["absolute"])",
                "positions have learned embeddings, and no others are there"),
});

inline constexpr DecoderFields kBertDecoderFields = {.num_kv_heads = "",
                                                     .head_dim = "",
                                                     .norm_eps = "layer_norm_eps",
                                                     .default_vocab_size = 30522,
                                                     .default_hidden_size = 768,
                                                     .default_num_layers = 12,
                                                     .default_num_heads = 12,
                                                     .default_intermediate = 3072,
                                                     .default_max_positions = 512,
                                                     .default_norm_eps = 1e-12,
                                                     .default_activation = "gelu",
                                                     .default_tied = true,
                                                     .default_bos = -1,
                                                     .default_eos = -1};

// The traits of every such encoder.
inline void make_post_norm_encoder(ModelConfig& model) {
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.residual_after_norm = true;
  model.is_causal = false;
}

constexpr bool is_not_first(const ModelConfig& /*config*/, int32_t layer) {
  return layer > 0;
}
constexpr bool has_positions(const ModelConfig& config, int32_t /*layer*/) {
  return config.learned_positions;
}
constexpr bool has_types(const ModelConfig& config, int32_t /*layer*/) {
  return config.num_token_types > 0;
}
// Of ModernBERT and its decoder.
constexpr bool has_norm_bias(const ModelConfig& config, int32_t /*layer*/) {
  return config.norms_have_biases;
}
constexpr bool has_later_norm_bias(const ModelConfig& config, int32_t layer) {
  return config.norms_have_biases && layer > 0;
}

// Embeddings that are brought to the width of the stream once they are summed up and normed.
inline constexpr auto kNarrowEmbeddingTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "embeddings.word_embeddings.weight", Dim::kVocab, Dim::kEmbedding},
    {Role::kPositionEmbedding, "embeddings.position_embeddings.weight", Dim::kPositions,
     Dim::kEmbedding},
    {Role::kTypeEmbedding, "embeddings.token_type_embeddings.weight", Dim::kTokenTypes,
     Dim::kEmbedding},
    {Role::kEmbeddingNorm, "embeddings.LayerNorm.weight", Dim::kOne, Dim::kEmbedding},
    {Role::kEmbeddingNormBias, "embeddings.LayerNorm.bias", Dim::kOne, Dim::kEmbedding},
});

// What stands around attention in each layer.
inline constexpr auto kBertLayerTensors = std::to_array<TensorSpec>({
    {Role::kAttentionNorm, "encoder.layer.{layer-1}.output.LayerNorm.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, is_not_first},
    {Role::kAttentionNormBias, "encoder.layer.{layer-1}.output.LayerNorm.bias", Dim::kOne,
     Dim::kHidden, Split::kNone, is_not_first},
    {Role::kFinalNorm, "encoder.layer.{last}.output.LayerNorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "encoder.layer.{last}.output.LayerNorm.bias", Dim::kOne, Dim::kHidden},
    {Role::kUp, "encoder.layer.{layer}.intermediate.dense.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kUpBias, "encoder.layer.{layer}.intermediate.dense.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows},
    {Role::kDown, "encoder.layer.{layer}.output.dense.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
    {Role::kDownBias, "encoder.layer.{layer}.output.dense.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
});

// The same with embeddings as wide as the stream.
inline constexpr auto kBertOuterTensors = join_tensors(
    std::to_array<TensorSpec>({
        {Role::kTokenEmbedding, "embeddings.word_embeddings.weight", Dim::kVocab, Dim::kHidden},
        {Role::kPositionEmbedding, "embeddings.position_embeddings.weight", Dim::kPositions,
         Dim::kHidden},
        {Role::kEmbeddingNorm, "embeddings.LayerNorm.weight", Dim::kOne, Dim::kHidden},
        {Role::kEmbeddingNormBias, "embeddings.LayerNorm.bias", Dim::kOne, Dim::kHidden},
    }),
    kBertLayerTensors);

// What stands behind attention.
inline constexpr auto kBertAttendedTensors = std::to_array<TensorSpec>({
    {Role::kO, "encoder.layer.{layer}.attention.output.dense.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kOBias, "encoder.layer.{layer}.attention.output.dense.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
    {Role::kMlpNorm, "encoder.layer.{layer}.attention.output.LayerNorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNormBias, "encoder.layer.{layer}.attention.output.LayerNorm.bias", Dim::kOne,
     Dim::kHidden},
});

inline constexpr auto kBertAttentionTensors =
    join_tensors(std::to_array<TensorSpec>({
                     {Role::kQ, "encoder.layer.{layer}.attention.self.query.weight", Dim::kQ,
                      Dim::kHidden, Split::kRows},
                     {Role::kQBias, "encoder.layer.{layer}.attention.self.query.bias", Dim::kOne,
                      Dim::kQ, Split::kRows},
                     {Role::kK, "encoder.layer.{layer}.attention.self.key.weight", Dim::kKv,
                      Dim::kHidden, Split::kRows},
                     {Role::kKBias, "encoder.layer.{layer}.attention.self.key.bias", Dim::kOne,
                      Dim::kKv, Split::kRows},
                     {Role::kV, "encoder.layer.{layer}.attention.self.value.weight", Dim::kKv,
                      Dim::kHidden, Split::kRows},
                     {Role::kVBias, "encoder.layer.{layer}.attention.self.value.bias", Dim::kOne,
                      Dim::kKv, Split::kRows},
                 }),
                 kBertAttendedTensors);

inline constexpr auto kBertTensors =
    join_tensors(kBertOuterTensors,
                 std::to_array<TensorSpec>({
                     {Role::kTypeEmbedding, "embeddings.token_type_embeddings.weight",
                      Dim::kTokenTypes, Dim::kHidden},
                 }),
                 kBertAttentionTensors);

// Of one layer, on each token.
inline constexpr auto kTokenClassifier =
    std::to_array<HeadLayer>({{.weight = "classifier.weight", .bias = "classifier.bias"}});

// BERT's own head reads what its pooler makes of the first token.
inline constexpr auto kPoolerClassifier = std::to_array<HeadLayer>({
    {.weight = "pooler.dense.weight",
     .bias = "pooler.dense.bias",
     .activation = HeadActivation::kTanh},
    {.weight = "classifier.weight", .bias = "classifier.bias"},
});
inline constexpr auto kPoolerHeads = std::to_array<HeadSpec>({
    {Task::kClassify, HeadInput::kFirst, kPoolerClassifier},
    {Task::kClassifyTokens, HeadInput::kEach, kTokenClassifier},
});
inline constexpr auto kBertIgnored = std::to_array<std::string_view>(
    {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias", "cls.*"});

// RoBERTa's has a dense layer of its own.
inline constexpr auto kDenseClassifier = std::to_array<HeadLayer>({
    {.weight = "classifier.dense.weight",
     .bias = "classifier.dense.bias",
     .activation = HeadActivation::kTanh},
    {.weight = "classifier.out_proj.weight", .bias = "classifier.out_proj.bias"},
});
inline constexpr auto kDenseHeads = std::to_array<HeadSpec>({
    {Task::kClassify, HeadInput::kFirst, kDenseClassifier},
    {Task::kClassifyTokens, HeadInput::kEach, kTokenClassifier},
});
inline constexpr auto kRobertaIgnored = std::to_array<std::string_view>(
    {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias", "lm_head.*"});

}  // namespace tgi
