// ALBERT: BERT whose layers have the same weights, and whose embeddings are narrower than the
// stream.
// Sources: models/albert in `transformers`, https://arxiv.org/abs/1909.11942.
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

constexpr auto kAlbertFields = join_fields(
    kBertFields,
    std::to_array<KnownField>({
        read("type_vocab_size"),
        read("embedding_size"),
        read("num_hidden_groups"),
        harmless_if("inner_group_num", "[1]", "each group is one layer"),
        harmless_if("net_structure_type", "[0]", "is of an older script, which knew one structure"),
        harmless("gap_size", "is of an older script, which made nothing of it"),
        harmless("num_memory_blocks", "is of an older script, which made nothing of it"),
        harmless("down_scale_factor", "is of an older script, which made nothing of it"),
        harmless("classifier_dropout_prob", kOnlyTraining),
    }));

ModelConfig read_albert(const JsonReader& config) {
  DecoderFields fields = kBertDecoderFields;
  fields.default_vocab_size = 30000;
  fields.default_hidden_size = 4096;
  fields.default_num_heads = 64;
  fields.default_intermediate = 16384;
  fields.default_activation = "gelu_new";
  ModelConfig model = read_decoder_config(config, fields);
  make_post_norm_encoder(model);
  model.learned_positions = true;
  model.num_token_types = read_size(config, "type_vocab_size", 2, kMaxVocabSize);
  model.embedding_size = read_size(config, "embedding_size", 128, kMaxHiddenSize);
  model.projects_embedding_last = true;
  model.num_stored_layers = read_size(config, "num_hidden_groups", 1, kMaxLayers);
  if (model.num_stored_layers > model.num_layers) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected at most one for each of {} layers, got {}",
                            config.path_of("num_hidden_groups"), model.num_layers,
                            model.num_stored_layers));
  }
  return model;
}

constexpr auto kAlbertNames = std::to_array<std::string_view>({"AlbertModel"});
constexpr auto kAlbertTypes = std::to_array<std::string_view>({"albert"});

#define TGI_ALBERT_LAYER "encoder.albert_layer_groups.{layer}.albert_layers.0."
constexpr auto kAlbertTensors = join_tensors(
    kNarrowEmbeddingTensors,
    std::to_array<TensorSpec>({
        {Role::kEmbeddingIn, "encoder.embedding_hidden_mapping_in.weight", Dim::kHidden,
         Dim::kEmbedding},
        {Role::kEmbeddingInBias, "encoder.embedding_hidden_mapping_in.bias", Dim::kOne,
         Dim::kHidden},
        {Role::kAttentionNorm,
         "encoder.albert_layer_groups.{layer-1}.albert_layers.0.full_layer_layer_norm.weight",
         Dim::kOne, Dim::kHidden, Split::kNone, is_not_first},
        {Role::kAttentionNormBias,
         "encoder.albert_layer_groups.{layer-1}.albert_layers.0.full_layer_layer_norm.bias",
         Dim::kOne, Dim::kHidden, Split::kNone, is_not_first},
        {Role::kFinalNorm,
         "encoder.albert_layer_groups.{last}.albert_layers.0.full_layer_layer_norm.weight",
         Dim::kOne, Dim::kHidden},
        {Role::kFinalNormBias,
         "encoder.albert_layer_groups.{last}.albert_layers.0.full_layer_layer_norm.bias", Dim::kOne,
         Dim::kHidden},
        {Role::kQ, TGI_ALBERT_LAYER "attention.query.weight", Dim::kQ, Dim::kHidden, Split::kRows},
        {Role::kQBias, TGI_ALBERT_LAYER "attention.query.bias", Dim::kOne, Dim::kQ, Split::kRows},
        {Role::kK, TGI_ALBERT_LAYER "attention.key.weight", Dim::kKv, Dim::kHidden, Split::kRows},
        {Role::kKBias, TGI_ALBERT_LAYER "attention.key.bias", Dim::kOne, Dim::kKv, Split::kRows},
        {Role::kV, TGI_ALBERT_LAYER "attention.value.weight", Dim::kKv, Dim::kHidden, Split::kRows},
        {Role::kVBias, TGI_ALBERT_LAYER "attention.value.bias", Dim::kOne, Dim::kKv, Split::kRows},
        {Role::kO, TGI_ALBERT_LAYER "attention.dense.weight", Dim::kHidden, Dim::kQ,
         Split::kColumns},
        {Role::kOBias, TGI_ALBERT_LAYER "attention.dense.bias", Dim::kOne, Dim::kHidden,
         Split::kColumns},
        {Role::kMlpNorm, TGI_ALBERT_LAYER "attention.LayerNorm.weight", Dim::kOne, Dim::kHidden},
        {Role::kMlpNormBias, TGI_ALBERT_LAYER "attention.LayerNorm.bias", Dim::kOne, Dim::kHidden},
        {Role::kUp, TGI_ALBERT_LAYER "ffn.weight", Dim::kIntermediate, Dim::kHidden, Split::kRows},
        {Role::kUpBias, TGI_ALBERT_LAYER "ffn.bias", Dim::kOne, Dim::kIntermediate, Split::kRows},
        {Role::kDown, TGI_ALBERT_LAYER "ffn_output.weight", Dim::kHidden, Dim::kIntermediate,
         Split::kColumns},
        {Role::kDownBias, TGI_ALBERT_LAYER "ffn_output.bias", Dim::kOne, Dim::kHidden,
         Split::kColumns},
    }));
#undef TGI_ALBERT_LAYER

// As BERT's, but the pooler is the matrix itself.
constexpr auto kAlbertClassifier = std::to_array<HeadLayer>({
    {.weight = "pooler.weight", .bias = "pooler.bias", .activation = HeadActivation::kTanh},
    {.weight = "classifier.weight", .bias = "classifier.bias"},
});
constexpr auto kAlbertHeads = std::to_array<HeadSpec>({
    {Task::kClassify, HeadInput::kFirst, kAlbertClassifier},
    {Task::kClassifyTokens, HeadInput::kEach, kTokenClassifier},
});
constexpr auto kAlbertIgnored =
    std::to_array<std::string_view>({"embeddings.position_ids", "pooler.weight", "pooler.bias",
                                     "predictions.*", "sop_classifier.*"});

}  // namespace

extern const Architecture kAlbert;
constexpr Architecture kAlbert = {
    .names = kAlbertNames,
    .model_types = kAlbertTypes,
    .prefix = "albert.",
    .read_config = read_albert,
    .fields = kAlbertFields,
    .tensors = kAlbertTensors,
    .ignored = kAlbertIgnored,
    .heads = kAlbertHeads,
};

}  // namespace tgi
