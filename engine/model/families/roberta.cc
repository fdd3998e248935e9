// RoBERTa, XLM-RoBERTa and CamemBERT: BERT whose positions are counted from behind the padding's.
// BGE-M3, multilingual E5 and most rerankers are such models.
// Sources: models/roberta and models/xlm_roberta in `transformers`,
// https://arxiv.org/abs/1907.11692.
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

constexpr auto kRobertaFields = join_fields(kBertFields,
                                            std::to_array<KnownField>({
                                                read("type_vocab_size"),
                                                read_or_null("pad_token_id"),
                                            }));

ModelConfig read_roberta(const JsonReader& config) {
  DecoderFields fields = kBertDecoderFields;
  fields.default_vocab_size =
      config.string_or("model_type", "roberta") == "roberta" ? 50265 : 30522;
  ModelConfig model = read_decoder_config(config, fields);
  make_post_norm_encoder(model);
  model.learned_positions = true;
  model.position_offset = static_cast<int32_t>(config.integer_or("pad_token_id", 1)) + 1;
  if (model.position_offset < 0 || model.position_offset >= model.max_positions) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected 0 to {}, as positions are counted from behind it, got {}",
                            config.path_of("pad_token_id"), model.max_positions - 2,
                            model.position_offset - 1));
  }
  model.max_positions -= model.position_offset;  // the rows of the table are all that there are
  model.num_token_types = read_size(config, "type_vocab_size", 2, kMaxVocabSize);
  return model;
}

constexpr auto kRobertaNames =
    std::to_array<std::string_view>({"RobertaModel", "XLMRobertaModel", "CamembertModel"});
constexpr auto kRobertaTypes =
    std::to_array<std::string_view>({"roberta", "xlm-roberta", "camembert"});
}  // namespace

extern const Architecture kRoberta;
constexpr Architecture kRoberta = {
    .names = kRobertaNames,
    .model_types = kRobertaTypes,
    .prefix = "roberta.",
    .read_config = read_roberta,
    .fields = kRobertaFields,
    .tensors = kBertTensors,
    .ignored = kRobertaIgnored,
    .heads = kDenseHeads,
};

}  // namespace tgi
