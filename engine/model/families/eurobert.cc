// EuroBERT: Llama's layers whose tokens see both sides.
// Sources: models/eurobert in `transformers`, https://arxiv.org/abs/2503.05500.
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr auto kEuroBertFields = join_fields(
    std::to_array<KnownField>({
        harmless("tie_word_embeddings", "is of the head that fills masks, which is not used"),
    }),
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read("attention_bias"),
                    read("mlp_bias"),
                    read("classifier_pooling"),
                    harmless("mask_token", "is of the head that fills masks, which is not used"),
                    harmless("mask_token_id", "is of the head that fills masks, which is not used"),
                    harmless_if("is_decoder", "[false]", "all tokens see each other"),
                    harmless("is_causal", "all tokens see each other"),
                })));

HeadInput read_pooling(const JsonReader& config) {
  const std::string pooling = config.string_or("classifier_pooling", "late");
  if (pooling == "bos") return HeadInput::kFirst;
  if (pooling == "mean") return HeadInput::kMean;
  if (pooling == "late") return HeadInput::kMeanOfEach;
  throw Error(Code::kUnsupported,
              fmt::format("{}: '{}' is not supported; known are bos, mean, late",
                          config.path_of("classifier_pooling"), pooling));
}

ModelConfig read_eurobert(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 128256,
                                                   .default_hidden_size = 768,
                                                   .default_num_layers = 12,
                                                   .default_num_heads = 12,
                                                   .default_intermediate = 3072,
                                                   .default_max_positions = 8192,
                                                   .default_norm_eps = 1e-5});
  model.is_causal = false;
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  model.head_input = read_pooling(config);
  read_rope(config, model);
  return model;
}

constexpr auto kEuroBertAliases =
    std::to_array<FieldAlias>({{"clf_pooling", "classifier_pooling"}});

constexpr auto kEuroBertNames = std::to_array<std::string_view>({"EuroBertModel"});
constexpr auto kEuroBertTypes = std::to_array<std::string_view>({"eurobert"});

constexpr auto kEuroBertTensors = join_tensors(kLlamaOuterTensors,
                                               kLlamaNormTensors,
                                               kLlamaAttentionTensors,
                                               kLlamaQkvBiasTensors,
                                               kLlamaOBiasTensors,
                                               kLlamaMlpTensors,
                                               kLlamaMlpBiasTensors);

constexpr auto kEuroBertClassifier = std::to_array<HeadLayer>({
    {.weight = "dense.weight", .bias = "dense.bias", .activation = HeadActivation::kGelu},
    {.weight = "classifier.weight", .bias = "classifier.bias"},
});
constexpr auto kEuroBertTokenClassifier =
    std::to_array<HeadLayer>({{.weight = "classifier.weight", .bias = "classifier.bias"}});
constexpr auto kEuroBertHeads = std::to_array<HeadSpec>({
    {Task::kClassify, HeadInput::kAsConfigured, kEuroBertClassifier},
    {Task::kClassifyTokens, HeadInput::kEach, kEuroBertTokenClassifier},
});
constexpr auto kEuroBertIgnored = std::to_array<std::string_view>({"lm_head.*"});

}  // namespace

extern const Architecture kEuroBert;
constexpr Architecture kEuroBert = {
    .names = kEuroBertNames,
    .model_types = kEuroBertTypes,
    .prefix = "model.",
    .read_config = read_eurobert,
    .fields = kEuroBertFields,
    .aliases = kEuroBertAliases,
    .tensors = kEuroBertTensors,
    .ignored = kEuroBertIgnored,
    .heads = kEuroBertHeads,
};

}  // namespace tgi
