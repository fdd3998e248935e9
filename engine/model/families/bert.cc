// BERT: an encoder with learned positions, types of tokens and norms behind the branches. BGE, E5,
// GTE and MiniLM are such models. ERNIE is one with kinds of texts, all of which are the first
// here, as they are in `transformers` for who says nothing else. Sources: models/bert and
// models/ernie in `transformers`, https://arxiv.org/abs/1810.04805,
// https://arxiv.org/abs/2107.02137.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

constexpr auto kBertFileFields =
    join_fields(kBertFields, std::to_array<KnownField>({read("type_vocab_size")}));

ModelConfig read_bert(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kBertDecoderFields);
  make_post_norm_encoder(model);
  model.learned_positions = true;
  model.num_token_types = read_size(config, "type_vocab_size", 2, kMaxVocabSize);
  return model;
}

constexpr auto kErnieFields =
    join_fields(kBertFileFields,
                std::to_array<KnownField>({read("use_task_id"), read("task_type_vocab_size")}));

ModelConfig read_ernie(const JsonReader& config) {
  ModelConfig model = read_bert(config);
  if (config.boolean_or("use_task_id", false)) {
    model.num_task_types = read_size(config, "task_type_vocab_size", 3, kMaxVocabSize);
  }
  return model;
}

constexpr bool has_tasks(const ModelConfig& config, int32_t /*layer*/) {
  return config.num_task_types > 0;
}

constexpr auto kErnieNames = std::to_array<std::string_view>({"ErnieModel"});
constexpr auto kErnieTypes = std::to_array<std::string_view>({"ernie"});
constexpr auto kErnieTensors =
    join_tensors(std::to_array<TensorSpec>({
                     {Role::kTaskEmbedding, "embeddings.task_type_embeddings.weight",
                      Dim::kTaskTypes, Dim::kHidden, Split::kNone, has_tasks},
                 }),
                 kBertTensors);

constexpr auto kBertNames = std::to_array<std::string_view>({"BertModel"});
constexpr auto kBertTypes = std::to_array<std::string_view>({"bert"});
}  // namespace

extern const Architecture kBert, kErnie;
constexpr Architecture kBert = {
    .names = kBertNames,
    .model_types = kBertTypes,
    .prefix = "bert.",
    .read_config = read_bert,
    .fields = kBertFileFields,
    .tensors = kBertTensors,
    .ignored = kBertIgnored,
    .heads = kPoolerHeads,
};
constexpr Architecture kErnie = {
    .names = kErnieNames,
    .model_types = kErnieTypes,
    .prefix = "ernie.",
    .read_config = read_ernie,
    .fields = kErnieFields,
    .tensors = kErnieTensors,
    .ignored = kBertIgnored,
    .heads = kPoolerHeads,
};

}  // namespace tgi
