// Jina Embeddings 2 and the rerankers beside them, whose class is called JinaBert: BERT with gated
// MLPs and ALiBi to both sides.
// Sources: https://arxiv.org/abs/2310.19923, sections 3.1 and 3.2, and the models' own config.json.
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/model/alibi.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

// Before BERT's, whose positions are others.
constexpr auto kJinaBertFields =
    join_fields(std::to_array<KnownField>({
                    read("position_embedding_type"),
                }),
                join_fields(kBertFields,
                            std::to_array<KnownField>({
                                read("type_vocab_size"),
                                read("feed_forward_type"),
                                harmless("attn_implementation", kSameSums),
                                harmless("emb_pooler", "modules.json says it"),
                                harmless("model_max_length", "longer texts are taken all the same"),
                            })));

[[noreturn]] void refuse_jina_bert(const JsonReader& config,
                                   std::string_view field,
                                   std::string_view got,
                                   std::string_view known) {
  throw Error(Code::kUnsupported, fmt::format("{}: '{}' is not supported; known are {}",
                                              config.path_of(field), got, known));
}

ModelConfig read_jina_bert(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kBertDecoderFields);
  make_post_norm_encoder(model);
  const std::string mlp = config.string_or("feed_forward_type", "original");
  if (mlp != "original" && mlp != "geglu" && mlp != "reglu") {
    refuse_jina_bert(config, "feed_forward_type", mlp, "original, geglu, reglu");
  }
  model.gated_mlp = mlp != "original";
  if (model.gated_mlp) {
    model.activation = mlp == "geglu" ? Activation::kGelu : Activation::kRelu;
  }
  const std::string positions = config.string_or("position_embedding_type", "absolute");
  if (positions != "alibi" && positions != "absolute") {
    refuse_jina_bert(config, "position_embedding_type", positions, "alibi, absolute");
  }
  if (positions == "alibi") model.alibi_slopes = alibi_slopes_of_lower_power(model.num_heads);
  model.learned_positions = positions == "absolute";
  model.num_token_types = read_size(config, "type_vocab_size", 2, kMaxVocabSize);
  return model;
}

constexpr bool is_gated(const ModelConfig& config, int32_t /*layer*/) {
  return config.gated_mlp;
}
constexpr bool is_gated_and_later(const ModelConfig& config, int32_t layer) {
  return config.gated_mlp && layer > 0;
}
constexpr bool is_plain(const ModelConfig& config, int32_t /*layer*/) {
  return !config.gated_mlp;
}
constexpr bool is_plain_and_later(const ModelConfig& config, int32_t layer) {
  return !config.gated_mlp && layer > 0;
}

constexpr auto kJinaBertNames = std::to_array<std::string_view>({"JinaBertModel"});
constexpr auto kJinaBertTensors = join_tensors(
    std::to_array<TensorSpec>({
        {Role::kTokenEmbedding, "embeddings.word_embeddings.weight", Dim::kVocab, Dim::kHidden},
        {Role::kPositionEmbedding, "embeddings.position_embeddings.weight", Dim::kPositions,
         Dim::kHidden, Split::kNone, has_positions},
        {Role::kTypeEmbedding, "embeddings.token_type_embeddings.weight", Dim::kTokenTypes,
         Dim::kHidden},
        {Role::kEmbeddingNorm, "embeddings.LayerNorm.weight", Dim::kOne, Dim::kHidden},
        {Role::kEmbeddingNormBias, "embeddings.LayerNorm.bias", Dim::kOne, Dim::kHidden},
        // With gates.
        {Role::kAttentionNorm, "encoder.layer.{layer-1}.mlp.layernorm.weight", Dim::kOne,
         Dim::kHidden, Split::kNone, is_gated_and_later},
        {Role::kAttentionNormBias, "encoder.layer.{layer-1}.mlp.layernorm.bias", Dim::kOne,
         Dim::kHidden, Split::kNone, is_gated_and_later},
        {Role::kFinalNorm, "encoder.layer.{last}.mlp.layernorm.weight", Dim::kOne, Dim::kHidden,
         Split::kNone, is_gated},
        {Role::kFinalNormBias, "encoder.layer.{last}.mlp.layernorm.bias", Dim::kOne, Dim::kHidden,
         Split::kNone, is_gated},
        {Role::kGateUp, "encoder.layer.{layer}.mlp.gated_layers.weight", Dim::kGateUp, Dim::kHidden,
         Split::kRows, is_gated},
        {Role::kDown, "encoder.layer.{layer}.mlp.wo.weight", Dim::kHidden, Dim::kIntermediate,
         Split::kColumns, is_gated},
        {Role::kDownBias, "encoder.layer.{layer}.mlp.wo.bias", Dim::kOne, Dim::kHidden,
         Split::kColumns, is_gated},
        // As BERT has them.
        {Role::kAttentionNorm, "encoder.layer.{layer-1}.output.LayerNorm.weight", Dim::kOne,
         Dim::kHidden, Split::kNone, is_plain_and_later},
        {Role::kAttentionNormBias, "encoder.layer.{layer-1}.output.LayerNorm.bias", Dim::kOne,
         Dim::kHidden, Split::kNone, is_plain_and_later},
        {Role::kFinalNorm, "encoder.layer.{last}.output.LayerNorm.weight", Dim::kOne, Dim::kHidden,
         Split::kNone, is_plain},
        {Role::kFinalNormBias, "encoder.layer.{last}.output.LayerNorm.bias", Dim::kOne,
         Dim::kHidden, Split::kNone, is_plain},
        {Role::kUp, "encoder.layer.{layer}.intermediate.dense.weight", Dim::kIntermediate,
         Dim::kHidden, Split::kRows, is_plain},
        {Role::kUpBias, "encoder.layer.{layer}.intermediate.dense.bias", Dim::kOne,
         Dim::kIntermediate, Split::kRows, is_plain},
        {Role::kDown, "encoder.layer.{layer}.output.dense.weight", Dim::kHidden, Dim::kIntermediate,
         Split::kColumns, is_plain},
        {Role::kDownBias, "encoder.layer.{layer}.output.dense.bias", Dim::kOne, Dim::kHidden,
         Split::kColumns, is_plain},
    }),
    kBertAttentionTensors);

}  // namespace

extern const Architecture kJinaBert;
constexpr Architecture kJinaBert = {
    .names = kJinaBertNames,
    .model_types = {},
    .borrowed_type = "bert",
    .prefix = "bert.",
    .read_config = read_jina_bert,
    .fields = kJinaBertFields,
    .tensors = kJinaBertTensors,
    .ignored = kBertIgnored,
    .heads = kPoolerHeads,
};

}  // namespace tgi
