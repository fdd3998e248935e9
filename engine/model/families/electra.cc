// ELECTRA: BERT whose embeddings may be narrower than the stream.
// Sources: models/electra in `transformers`, https://arxiv.org/abs/2003.10555.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

constexpr auto kElectraFields = join_fields(
    kBertFields,
    std::to_array<KnownField>({
        read("type_vocab_size"),
        read("embedding_size"),
        harmless("summary_*", "is of another class than those of one text or pair"),
        harmless("discriminator_loss_*", kOnlyTraining),
        harmless("generator_*", kOnlyTraining),
        harmless_if("add_cross_attention", "[false]", "there is nothing else to attend to"),
    }));

ModelConfig read_electra(const JsonReader& config) {
  DecoderFields fields = kBertDecoderFields;
  fields.default_hidden_size = 256;
  fields.default_num_heads = 4;
  fields.default_intermediate = 1024;
  ModelConfig model = read_decoder_config(config, fields);
  make_post_norm_encoder(model);
  model.learned_positions = true;
  model.num_token_types = read_size(config, "type_vocab_size", 2, kMaxVocabSize);
  const int32_t embedding_size = read_size(config, "embedding_size", 128, kMaxHiddenSize);
  if (embedding_size != model.hidden_size) {
    model.embedding_size = embedding_size;
    model.projects_embedding_last = true;
  }
  return model;
}

constexpr bool is_projected(const ModelConfig& config, int32_t /*layer*/) {
  return config.embedding_size > 0;
}

constexpr auto kElectraNames = std::to_array<std::string_view>({"ElectraModel"});
constexpr auto kElectraTypes = std::to_array<std::string_view>({"electra"});

constexpr auto kElectraTensors =
    join_tensors(kNarrowEmbeddingTensors,
                 std::to_array<TensorSpec>({
                     {Role::kEmbeddingIn, "embeddings_project.weight", Dim::kHidden,
                      Dim::kEmbedding, Split::kNone, is_projected},
                     {Role::kEmbeddingInBias, "embeddings_project.bias", Dim::kOne, Dim::kHidden,
                      Split::kNone, is_projected},
                 }),
                 kBertLayerTensors,
                 kBertAttentionTensors);

constexpr auto kElectraClassifier = std::to_array<HeadLayer>({
    {.weight = "classifier.dense.weight",
     .bias = "classifier.dense.bias",
     .activation = HeadActivation::kGelu},
    {.weight = "classifier.out_proj.weight", .bias = "classifier.out_proj.bias"},
});
constexpr auto kElectraHeads = std::to_array<HeadSpec>({
    {Task::kClassify, HeadInput::kFirst, kElectraClassifier},
    {Task::kClassifyTokens, HeadInput::kEach, kTokenClassifier},
});
constexpr auto kElectraIgnored =
    std::to_array<std::string_view>({"embeddings.position_ids", "discriminator_predictions.*",
                                     "generator_predictions.*", "generator_lm_head.*"});

}  // namespace

extern const Architecture kElectra;
constexpr Architecture kElectra = {
    .names = kElectraNames,
    .model_types = kElectraTypes,
    .prefix = "electra.",
    .read_config = read_electra,
    .fields = kElectraFields,
    .tensors = kElectraTensors,
    .ignored = kElectraIgnored,
    .heads = kElectraHeads,
};

}  // namespace tgi
