// BERT: an encoder with learned positions, types of tokens and norms behind the branches. BGE, E5,
// GTE and MiniLM are such models.
// Sources: models/bert in `transformers`, https://arxiv.org/abs/1810.04805.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

constexpr auto kFields =
    join_fields(kBertFields, std::to_array<KnownField>({read("type_vocab_size")}));

ModelConfig read_bert(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kBertDecoderFields);
  make_post_norm_encoder(model);
  model.learned_positions = true;
  model.num_token_types = read_size(config, "type_vocab_size", 2, kMaxVocabSize);
  return model;
}

constexpr auto kBertNames = std::to_array<std::string_view>({"BertModel"});
constexpr auto kBertTypes = std::to_array<std::string_view>({"bert"});
}  // namespace

extern const Architecture kBert;
constexpr Architecture kBert = {
    .names = kBertNames,
    .model_types = kBertTypes,
    .prefix = "bert.",
    .read_config = read_bert,
    .fields = kFields,
    .tensors = kBertTensors,
    .ignored = kBertIgnored,
    .heads = kPoolerHeads,
};

}  // namespace tgi
