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
constexpr auto kMpNetTensors =
    join_tensors(kBertOuterTensors,
                 std::to_array<TensorSpec>({
                     {Role::kDistanceBias, "encoder.relative_attention_bias.weight", Dim::kOne,
                      Dim::kDistanceBiases},
                     {Role::kQ, "encoder.layer.{layer}.attention.attn.q.weight", Dim::kQ,
                      Dim::kHidden, Split::kRows},
                     {Role::kQBias, "encoder.layer.{layer}.attention.attn.q.bias", Dim::kOne,
                      Dim::kQ, Split::kRows},
                     {Role::kK, "encoder.layer.{layer}.attention.attn.k.weight", Dim::kKv,
                      Dim::kHidden, Split::kRows},
                     {Role::kKBias, "encoder.layer.{layer}.attention.attn.k.bias", Dim::kOne,
                      Dim::kKv, Split::kRows},
                     {Role::kV, "encoder.layer.{layer}.attention.attn.v.weight", Dim::kKv,
                      Dim::kHidden, Split::kRows},
                     {Role::kVBias, "encoder.layer.{layer}.attention.attn.v.bias", Dim::kOne,
                      Dim::kKv, Split::kRows},
                     {Role::kO, "encoder.layer.{layer}.attention.attn.o.weight", Dim::kHidden,
                      Dim::kQ, Split::kColumns},
                     {Role::kOBias, "encoder.layer.{layer}.attention.attn.o.bias", Dim::kOne,
                      Dim::kHidden, Split::kColumns},
                     {Role::kMlpNorm, "encoder.layer.{layer}.attention.LayerNorm.weight", Dim::kOne,
                      Dim::kHidden},
                     {Role::kMlpNormBias, "encoder.layer.{layer}.attention.LayerNorm.bias",
                      Dim::kOne, Dim::kHidden},
                 }));

}  // namespace

extern const Architecture kMpNet;
constexpr Architecture kMpNet = {
    .names = kMpNetNames,
    .model_types = kMpNetTypes,
    .prefix = "mpnet.",
    .read_config = read_mpnet,
    .fields = kMpNetFields,
    .tensors = kMpNetTensors,
    .ignored = kRobertaIgnored,
    .heads = kDenseHeads,
};

}  // namespace tgi
