// Nomic BERT: BERT with rotated positions, gated MLPs and no biases.
// Sources: models/nomic_bert in `transformers`, https://arxiv.org/abs/2402.01613.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr auto kNomicFields = join_fields(kBertFields,
                                          std::to_array<KnownField>({
                                              read_or_null("head_dim"),
                                              read_or_null("rope_parameters"),
                                              read_or_null("rope_scaling"),
                                              read_or_null("rope_theta"),
                                          }));

ModelConfig read_nomic_bert(const JsonReader& config) {
  DecoderFields fields = kBertDecoderFields;
  fields.head_dim = "head_dim";
  fields.default_vocab_size = 30528;
  fields.default_max_positions = 2048;
  fields.default_activation = "silu";
  ModelConfig model = read_decoder_config(config, fields);
  make_post_norm_encoder(model);
  model.gated_mlp = true;
  model.num_token_types = read_size(config, "type_vocab_size", 2, kMaxVocabSize);
  read_rope(config, model, {.default_theta = 1000.0});
  return model;
}

constexpr auto kNomicNames = std::to_array<std::string_view>({"NomicBertModel"});
constexpr auto kNomicTypes = std::to_array<std::string_view>({"nomic_bert"});
constexpr auto kNomicIgnored = std::to_array<std::string_view>(
    {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias", "cls.*"});

constexpr auto kNomicTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "embeddings.word_embeddings.weight", Dim::kVocab, Dim::kHidden},
    {Role::kTypeEmbedding, "embeddings.token_type_embeddings.weight", Dim::kTokenTypes,
     Dim::kHidden},
    {Role::kEmbeddingNorm, "embeddings.LayerNorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kEmbeddingNormBias, "embeddings.LayerNorm.bias", Dim::kOne, Dim::kHidden},
    {Role::kAttentionNorm, "layers.{layer-1}.post_mlp_layernorm.weight", Dim::kOne, Dim::kHidden,
     Split::kNone, is_not_first},
    {Role::kAttentionNormBias, "layers.{layer-1}.post_mlp_layernorm.bias", Dim::kOne, Dim::kHidden,
     Split::kNone, is_not_first},
    {Role::kFinalNorm, "layers.{last}.post_mlp_layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "layers.{last}.post_mlp_layernorm.bias", Dim::kOne, Dim::kHidden},
    {Role::kQ, "layers.{layer}.self_attn.q_proj.weight", Dim::kQ, Dim::kHidden, Split::kRows},
    {Role::kK, "layers.{layer}.self_attn.k_proj.weight", Dim::kKv, Dim::kHidden, Split::kRows},
    {Role::kV, "layers.{layer}.self_attn.v_proj.weight", Dim::kKv, Dim::kHidden, Split::kRows},
    {Role::kO, "layers.{layer}.self_attn.o_proj.weight", Dim::kHidden, Dim::kQ, Split::kColumns},
    {Role::kMlpNorm, "layers.{layer}.post_attention_layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNormBias, "layers.{layer}.post_attention_layernorm.bias", Dim::kOne, Dim::kHidden},
    {Role::kGate, "layers.{layer}.mlp.gate_proj.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kUp, "layers.{layer}.mlp.up_proj.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kDown, "layers.{layer}.mlp.down_proj.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
});

constexpr auto kNomicClassifier = std::to_array<HeadLayer>({
    {.weight = "pooler.dense.weight",
     .bias = "pooler.dense.bias",
     .activation = HeadActivation::kTanh},
    {.weight = "classifier.weight", .bias = "classifier.bias"},
});
constexpr auto kNomicHeads = std::to_array<HeadSpec>({
    {Task::kClassify, HeadInput::kFirst, kNomicClassifier},
    {Task::kClassifyTokens, HeadInput::kEach, kTokenClassifier},
});

}  // namespace

extern const Architecture kNomicBert;
constexpr Architecture kNomicBert = {
    .names = kNomicNames,
    .model_types = kNomicTypes,
    .prefix = "nomic_bert.",
    .read_config = read_nomic_bert,
    .fields = kNomicFields,
    .tensors = kNomicTensors,
    .ignored = kNomicIgnored,
    .heads = kNomicHeads,
};

}  // namespace tgi
