// MPNet: BERT whose scores have a bias for the distance of two tokens, the same in all layers.
// Sources: models/mpnet in `transformers`, https://arxiv.org/abs/2004.09297.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

constexpr auto kMpNetFields =
    join_fields(kBertFields, std::to_array<KnownField>({read("relative_attention_num_buckets")}));

ModelConfig read_mpnet(const JsonReader& config) {
  DecoderFields fields = kBertDecoderFields;
  fields.default_vocab_size = 30527;
  ModelConfig model = read_decoder_config(config, fields);
  make_post_norm_encoder(model);
  model.learned_positions = true;
  model.position_offset = 2;  // rows of the table for padding
  if (model.max_positions <= model.position_offset) {
    check_size(config, "max_position_embeddings", 0, kMaxPositions);
  }
  model.max_positions -= model.position_offset;
  model.distance_buckets = read_size(config, "relative_attention_num_buckets", 32, 1 << 12);
  return model;
}

constexpr auto kMpNetNames = std::to_array<std::string_view>({"MPNetModel"});
constexpr auto kMpNetTypes = std::to_array<std::string_view>({"mpnet"});
constexpr auto kMpNetIgnored = std::to_array<std::string_view>(
    {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias", "lm_head.*"});

constexpr auto kMpNetTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "embeddings.word_embeddings.weight", Dim::kVocab, Dim::kHidden},
    {Role::kPositionEmbedding, "embeddings.position_embeddings.weight", Dim::kPositions,
     Dim::kHidden},
    {Role::kEmbeddingNorm, "embeddings.LayerNorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kEmbeddingNormBias, "embeddings.LayerNorm.bias", Dim::kOne, Dim::kHidden},
    {Role::kDistanceBias, "encoder.relative_attention_bias.weight", Dim::kOne,
     Dim::kDistanceBiases},
    {Role::kAttentionNorm, "encoder.layer.{layer-1}.output.LayerNorm.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, is_not_first},
    {Role::kAttentionNormBias, "encoder.layer.{layer-1}.output.LayerNorm.bias", Dim::kOne,
     Dim::kHidden, Split::kNone, is_not_first},
    {Role::kFinalNorm, "encoder.layer.{last}.output.LayerNorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "encoder.layer.{last}.output.LayerNorm.bias", Dim::kOne, Dim::kHidden},
    {Role::kQ, "encoder.layer.{layer}.attention.attn.q.weight", Dim::kQ, Dim::kHidden,
     Split::kRows},
    {Role::kQBias, "encoder.layer.{layer}.attention.attn.q.bias", Dim::kOne, Dim::kQ, Split::kRows},
    {Role::kK, "encoder.layer.{layer}.attention.attn.k.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kKBias, "encoder.layer.{layer}.attention.attn.k.bias", Dim::kOne, Dim::kKv,
     Split::kRows},
    {Role::kV, "encoder.layer.{layer}.attention.attn.v.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kVBias, "encoder.layer.{layer}.attention.attn.v.bias", Dim::kOne, Dim::kKv,
     Split::kRows},
    {Role::kO, "encoder.layer.{layer}.attention.attn.o.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kOBias, "encoder.layer.{layer}.attention.attn.o.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
    {Role::kMlpNorm, "encoder.layer.{layer}.attention.LayerNorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNormBias, "encoder.layer.{layer}.attention.LayerNorm.bias", Dim::kOne, Dim::kHidden},
    {Role::kUp, "encoder.layer.{layer}.intermediate.dense.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kUpBias, "encoder.layer.{layer}.intermediate.dense.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows},
    {Role::kDown, "encoder.layer.{layer}.output.dense.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
    {Role::kDownBias, "encoder.layer.{layer}.output.dense.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
});

constexpr auto kMpNetClassifier = std::to_array<HeadLayer>({
    {.weight = "classifier.dense.weight",
     .bias = "classifier.dense.bias",
     .activation = HeadActivation::kTanh},
    {.weight = "classifier.out_proj.weight", .bias = "classifier.out_proj.bias"},
});
constexpr auto kMpNetHeads = std::to_array<HeadSpec>({
    {Task::kClassify, HeadInput::kFirst, kMpNetClassifier},
    {Task::kClassifyTokens, HeadInput::kEach, kTokenClassifier},
});

}  // namespace

extern const Architecture kMpNet;
constexpr Architecture kMpNet = {
    .names = kMpNetNames,
    .model_types = kMpNetTypes,
    .prefix = "mpnet.",
    .read_config = read_mpnet,
    .fields = kMpNetFields,
    .tensors = kMpNetTensors,
    .ignored = kMpNetIgnored,
    .heads = kMpNetHeads,
};

}  // namespace tgi
