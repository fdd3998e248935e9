// DistilBERT: half of BERT, without types of tokens.
// Sources: models/distilbert in `transformers`, https://arxiv.org/abs/1910.01108.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

constexpr auto kDistilBertFields = std::to_array<KnownField>({
    harmless("is_causal", "all tokens see each other"),
    read("vocab_size"),
    read("dim"),
    read("n_layers"),
    read("n_heads"),
    read("hidden_dim"),
    read("activation"),
    read("max_position_embeddings"),
    harmless("sinusoidal_pos_embds", "the table of positions is stored, however it was made"),
    harmless("dropout", kOnlyTraining),
    harmless("qa_dropout", kOnlyTraining),
    harmless("seq_classif_dropout", kOnlyTraining),
    harmless("tie_weights_", "is of the head that fills masks, which is not used"),
    harmless("tie_word_embeddings", "is of the head that fills masks, which is not used"),
});

constexpr auto kDistilBertAliases = std::to_array<FieldAlias>({
    {"hidden_size", "dim"},
    {"num_attention_heads", "n_heads"},
    {"num_hidden_layers", "n_layers"},
});

ModelConfig read_distilbert(const JsonReader& config) {
  DecoderFields fields = kBertDecoderFields;
  fields.hidden_size = "dim";
  fields.num_layers = "n_layers";
  fields.num_heads = "n_heads";
  fields.intermediate_size = "hidden_dim";
  fields.activation = "activation";
  fields.norm_eps = "";
  fields.default_num_layers = 6;
  ModelConfig model = read_decoder_config(config, fields);
  make_post_norm_encoder(model);
  model.learned_positions = true;
  return model;
}

constexpr auto kDistilBertNames = std::to_array<std::string_view>({"DistilBertModel"});
constexpr auto kDistilBertTypes = std::to_array<std::string_view>({"distilbert"});
constexpr auto kDistilBertIgnored = std::to_array<std::string_view>(
    {"embeddings.position_ids", "vocab_transform.*", "vocab_layer_norm.*", "vocab_projector.*"});

constexpr auto kDistilBertTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "embeddings.word_embeddings.weight", Dim::kVocab, Dim::kHidden},
    {Role::kPositionEmbedding, "embeddings.position_embeddings.weight", Dim::kPositions,
     Dim::kHidden},
    {Role::kEmbeddingNorm, "embeddings.LayerNorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kEmbeddingNormBias, "embeddings.LayerNorm.bias", Dim::kOne, Dim::kHidden},
    {Role::kAttentionNorm, "transformer.layer.{layer-1}.output_layer_norm.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, is_not_first},
    {Role::kAttentionNormBias, "transformer.layer.{layer-1}.output_layer_norm.bias", Dim::kOne,
     Dim::kHidden, Split::kNone, is_not_first},
    {Role::kFinalNorm, "transformer.layer.{last}.output_layer_norm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kFinalNormBias, "transformer.layer.{last}.output_layer_norm.bias", Dim::kOne,
     Dim::kHidden},
    {Role::kQ, "transformer.layer.{layer}.attention.q_lin.weight", Dim::kQ, Dim::kHidden,
     Split::kRows},
    {Role::kQBias, "transformer.layer.{layer}.attention.q_lin.bias", Dim::kOne, Dim::kQ,
     Split::kRows},
    {Role::kK, "transformer.layer.{layer}.attention.k_lin.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kKBias, "transformer.layer.{layer}.attention.k_lin.bias", Dim::kOne, Dim::kKv,
     Split::kRows},
    {Role::kV, "transformer.layer.{layer}.attention.v_lin.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kVBias, "transformer.layer.{layer}.attention.v_lin.bias", Dim::kOne, Dim::kKv,
     Split::kRows},
    {Role::kO, "transformer.layer.{layer}.attention.out_lin.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kOBias, "transformer.layer.{layer}.attention.out_lin.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
    {Role::kMlpNorm, "transformer.layer.{layer}.sa_layer_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNormBias, "transformer.layer.{layer}.sa_layer_norm.bias", Dim::kOne, Dim::kHidden},
    {Role::kUp, "transformer.layer.{layer}.ffn.lin1.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kUpBias, "transformer.layer.{layer}.ffn.lin1.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows},
    {Role::kDown, "transformer.layer.{layer}.ffn.lin2.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
    {Role::kDownBias, "transformer.layer.{layer}.ffn.lin2.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
});

constexpr auto kDistilBertClassifier = std::to_array<HeadLayer>({
    {.weight = "pre_classifier.weight",
     .bias = "pre_classifier.bias",
     .activation = HeadActivation::kRelu},
    {.weight = "classifier.weight", .bias = "classifier.bias"},
});
constexpr auto kDistilBertHeads = std::to_array<HeadSpec>({
    {Task::kClassify, HeadInput::kFirst, kDistilBertClassifier},
    {Task::kClassifyTokens, HeadInput::kEach, kTokenClassifier},
});

}  // namespace

extern const Architecture kDistilBert;
constexpr Architecture kDistilBert = {
    .names = kDistilBertNames,
    .model_types = kDistilBertTypes,
    .prefix = "distilbert.",
    .read_config = read_distilbert,
    .fields = kDistilBertFields,
    .aliases = kDistilBertAliases,
    .tensors = kDistilBertTensors,
    .ignored = kDistilBertIgnored,
    .heads = kDistilBertHeads,
};

}  // namespace tgi
