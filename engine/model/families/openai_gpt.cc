// The first GPT: GPT-2's block with the norms behind the branches, and none before the head.
// Source: models/openai in `transformers`.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/gpt2_names.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

// Of what others call gelu it has the approximation.
Activation read_afn(const JsonReader& config) {
  const std::string name = config.string_or("afn", "gelu");
  if (name == "gelu") return Activation::kGeluTanh;
  if (name == "relu") return Activation::kRelu;
  if (name == "silu" || name == "swish") return Activation::kSilu;
  throw Error(Code::kUnsupported,
              fmt::format("{}: '{}' is not supported; known are gelu, relu, silu, swish",
                          config.path_of("afn"), name));
}

ModelConfig read_openai_gpt(const JsonReader& config) {
  DecoderFields fields = kGpt2Decoder;
  fields.activation = "";
  fields.default_vocab_size = 40478;
  fields.default_max_positions = 512;
  fields.default_bos = -1;
  fields.default_eos = -1;
  ModelConfig model = read_decoder_config(config, fields);
  model.activation = read_afn(config);
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.learned_positions = true;
  model.residual_after_norm = true;
  return model;
}

constexpr auto kOpenAiGptFields =
    join_fields(std::to_array<KnownField>({
                    read("afn"),
                    harmless_if("n_inner", "[]", "it is four times n_embd, always"),
                    harmless_if("activation_function", "[]", "afn says it"),
                    harmless("n_special", "the vocabulary has them"),
                }),
                kGpt2Fields);

constexpr auto kOpenAiGptNames = std::to_array<std::string_view>({"OpenAIGPTLMHeadModel"});
constexpr auto kOpenAiGptTypes = std::to_array<std::string_view>({"openai-gpt"});

// The norm behind a layer is in its place for the forward pass that before the next layer.
constexpr auto kOpenAiGptTensors = join_tensors(
    std::to_array<TensorSpec>({
        {Role::kTokenEmbedding, "transformer.tokens_embed.weight", Dim::kVocab, Dim::kHidden},
        {Role::kPositionEmbedding, "transformer.positions_embed.weight", Dim::kPositions,
         Dim::kHidden},
        {Role::kFinalNorm, "transformer.h.{last}.ln_2.weight", Dim::kOne, Dim::kHidden},
        {Role::kFinalNormBias, "transformer.h.{last}.ln_2.bias", Dim::kOne, Dim::kHidden},
        {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
        {Role::kAttentionNorm, "transformer.h.{layer-1}.ln_2.weight", Dim::kOne, Dim::kHidden,
         Split::kNone, is_not_first},
        {Role::kAttentionNormBias, "transformer.h.{layer-1}.ln_2.bias", Dim::kOne, Dim::kHidden,
         Split::kNone, is_not_first},
        {Role::kMlpNorm, "transformer.h.{layer}.ln_1.weight", Dim::kOne, Dim::kHidden},
        {Role::kMlpNormBias, "transformer.h.{layer}.ln_1.bias", Dim::kOne, Dim::kHidden},
    }),
    kGpt2MatrixTensors,
    kGpt2BranchBiasTensors);

}  // namespace

extern const Architecture kOpenAiGpt;
constexpr Architecture kOpenAiGpt = {
    .names = kOpenAiGptNames,
    .model_types = kOpenAiGptTypes,
    .prefix = "transformer.",
    .read_config = read_openai_gpt,
    .fields = kOpenAiGptFields,
    .aliases = kGpt2Aliases,
    .tensors = kOpenAiGptTensors,
    .ignored = kGpt2Ignored,
};

}  // namespace tgi
