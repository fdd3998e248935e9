// Jina Embeddings 3: XLM-RoBERTa with rotated positions in place of learned ones. Its adapters for
// kinds of texts are checkpoints of their own.
// Sources: models/jina_embeddings_v3 in `transformers` (names of tensors: its
// conversion_mapping.py), https://arxiv.org/abs/2409.10173.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr auto kJinaFields =
    join_fields(std::to_array<KnownField>({
                    harmless_if("position_embedding_type",
                                R"(["rotary"])",
                                "positions are rotated, and no others are there"),
                }),
                join_fields(kBertFields,
                            std::to_array<KnownField>({
                                read("type_vocab_size"),
                                read_or_null("head_dim"),
                                read_or_null("rope_parameters"),
                                read_or_null("rope_scaling"),
                                read_or_null("rope_theta"),
                            })));

ModelConfig read_jina_embeddings_3(const JsonReader& config) {
  DecoderFields fields = kBertDecoderFields;
  fields.head_dim = "head_dim";
  fields.default_vocab_size = 250002;
  fields.default_hidden_size = 1024;
  fields.default_num_layers = 24;
  fields.default_num_heads = 16;
  fields.default_intermediate = 4096;
  fields.default_max_positions = 8194;
  fields.default_norm_eps = 1e-5;
  fields.default_bos = 0;
  fields.default_eos = 2;
  ModelConfig model = read_decoder_config(config, fields);
  make_post_norm_encoder(model);
  model.num_token_types = read_size(config, "type_vocab_size", 1, kMaxVocabSize);
  read_rope(config, model, {.default_theta = 20000.0});
  return model;
}

constexpr auto kJinaNames = std::to_array<std::string_view>({"JinaEmbeddingsV3Model"});
constexpr auto kJinaTypes = std::to_array<std::string_view>({"jina_embeddings_v3"});
constexpr auto kJinaTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "embeddings.word_embeddings.weight", Dim::kVocab, Dim::kHidden},
    {Role::kTypeEmbedding, "embeddings.token_type_embeddings.weight", Dim::kTokenTypes,
     Dim::kHidden},
    {Role::kEmbeddingNorm, "emb_ln.weight", Dim::kOne, Dim::kHidden},
    {Role::kEmbeddingNormBias, "emb_ln.bias", Dim::kOne, Dim::kHidden},
    {Role::kAttentionNorm, "encoder.layers.{layer-1}.norm2.weight", Dim::kOne, Dim::kHidden,
     Split::kNone, is_not_first},
    {Role::kAttentionNormBias, "encoder.layers.{layer-1}.norm2.bias", Dim::kOne, Dim::kHidden,
     Split::kNone, is_not_first},
    {Role::kFinalNorm, "encoder.layers.{last}.norm2.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "encoder.layers.{last}.norm2.bias", Dim::kOne, Dim::kHidden},
    {Role::kQkv, "encoder.layers.{layer}.mixer.Wqkv.weight", Dim::kQkv, Dim::kHidden, Split::kRows},
    {Role::kQkvBias, "encoder.layers.{layer}.mixer.Wqkv.bias", Dim::kOne, Dim::kQkv, Split::kRows},
    {Role::kO, "encoder.layers.{layer}.mixer.out_proj.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kOBias, "encoder.layers.{layer}.mixer.out_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
    {Role::kMlpNorm, "encoder.layers.{layer}.norm1.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNormBias, "encoder.layers.{layer}.norm1.bias", Dim::kOne, Dim::kHidden},
    {Role::kUp, "encoder.layers.{layer}.mlp.fc1.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kUpBias, "encoder.layers.{layer}.mlp.fc1.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows},
    {Role::kDown, "encoder.layers.{layer}.mlp.fc2.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
    {Role::kDownBias, "encoder.layers.{layer}.mlp.fc2.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
});

// As `transformers` calls them within.
constexpr auto kJinaRenames = std::to_array<TensorRename>({
    {".self_attn.o_proj.", ".mixer.out_proj."},
});

}  // namespace

extern const Architecture kJinaEmbeddings3;
constexpr Architecture kJinaEmbeddings3 = {
    .names = kJinaNames,
    .model_types = kJinaTypes,
    .prefix = "roberta.",
    .read_config = read_jina_embeddings_3,
    .fields = kJinaFields,
    .tensors = kJinaTensors,
    .renames = kJinaRenames,
    .ignored = kRobertaIgnored,
    .heads = kDenseHeads,
};

}  // namespace tgi
