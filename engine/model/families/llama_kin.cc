// Models whose files name a class of their own for Llama's block: Yi, Aquila, XVERSE and Skywork as
// they are, InternLM 1 with biases of attention, Orion with LayerNorm, MiniCPM 1, 2 and 4 with
// multipliers of embedding, branches and logits.
// Source: modeling_*.py of the published models.
#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/llama_fields.h"
#include "engine/model/minicpm_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_kin(const JsonReader& config) {
  return read_llama_block(config, {});
}

constexpr auto kKinFields =
    join_fields(kLlamaBlockFields,
                std::to_array<KnownField>({
                    harmless("max_tokenizer_truncation", "is about how texts are prepared"),
                    harmless("use_flash_attention", kSameSums),
                }));

constexpr auto kYiNames = std::to_array<std::string_view>({"YiForCausalLM"});
constexpr auto kYiTypes = std::to_array<std::string_view>({"Yi"});
constexpr auto kAquilaNames = std::to_array<std::string_view>({"AquilaForCausalLM"});
constexpr auto kAquilaTypes = std::to_array<std::string_view>({"aquila"});
constexpr auto kXverseNames = std::to_array<std::string_view>({"XverseForCausalLM"});
constexpr auto kXverseTypes = std::to_array<std::string_view>({"xverse"});
constexpr auto kSkyworkNames = std::to_array<std::string_view>({"SkyworkForCausalLM"});
constexpr auto kSkyworkTypes = std::to_array<std::string_view>({"skywork"});

constexpr auto kYiRenames = std::to_array<TensorRename>({
    {".ln1.", ".input_layernorm."},
    {".ln2.", ".post_attention_layernorm."},
});

// Behind max_position_embeddings alone `dynamic` turns positions more slowly.
ModelConfig read_internlm(const JsonReader& given) {
  Json json = given.json();
  json["attention_bias"] = given.boolean_or("bias", true);
  if (given.has("rotary")) {
    const JsonReader rotary = given.object("rotary");
    const std::string type = rotary.string_or("type", "dynamic");
    if (type != "dynamic" && type != "origin") {
      throw Error(Code::kUnsupported,
                  fmt::format("{}: '{}' is not supported; known are dynamic, origin",
                              rotary.path_of("type"), type));
    }
    json["rope_theta"] = read_positive(rotary, "base", 10000.0);
  }
  return read_llama_block(JsonReader(json, ""), {.default_vocab_size = 103168});
}

constexpr auto kInternlmFields =
    join_fields(kDecoderFields, std::to_array<KnownField>({read("bias"), read_or_null("rotary")}));

constexpr auto kInternlmNames = std::to_array<std::string_view>({"InternLMForCausalLM"});
constexpr auto kInternlmTypes = std::to_array<std::string_view>({"internlm"});

ModelConfig read_orion(const JsonReader& config) {
  ModelConfig model =
      read_llama_block(config, {.default_vocab_size = 84608, .default_intermediate = 15360});
  model.norm_kind = NormKind::kLayer;
  return model;
}

constexpr auto kOrionNames = std::to_array<std::string_view>({"OrionForCausalLM"});
constexpr auto kOrionTypes = std::to_array<std::string_view>({"orion"});
constexpr auto kOrionTensors = join_tensors(
    kLlamaBlockTensors, kFinalNormBiasTensors, kAttentionNormBiasTensors, kMlpNormBiasTensors);

ModelConfig read_minicpm(const JsonReader& config) {
  ModelConfig model = read_llama_block(config, {.default_tied = true});
  read_minicpm_multipliers(config, {}, model);
  return model;
}

constexpr auto kMinicpmFields =
    join_fields(kLlamaBlockFields,
                kMiniCpmMultiplierFields,
                std::to_array<KnownField>({
                    harmless("mup_denominator", kOnlyTraining),
                    harmless_if("sparse_config", "[]", "all tokens are attended to"),
                }));

constexpr auto kMinicpmNames = std::to_array<std::string_view>({"MiniCPMForCausalLM"});
constexpr auto kMinicpmTypes = std::to_array<std::string_view>({"minicpm"});

constexpr Architecture kin_of_llama(std::span<const std::string_view> names,
                                    std::span<const std::string_view> types,
                                    std::span<const TensorRename> renames = {}) {
  return {
      .names = names,
      .model_types = types,
      .prefix = "model.",
      .read_config = read_kin,
      .fields = kKinFields,
      .tensors = kLlamaBlockTensors,
      .renames = renames,
      .ignored = kRotaryTables,
  };
}

}  // namespace

extern const Architecture kYi, kAquila, kXverse, kSkywork, kInternlm, kOrion, kMiniCpm;
constexpr Architecture kYi = kin_of_llama(kYiNames, kYiTypes, kYiRenames);
constexpr Architecture kAquila = kin_of_llama(kAquilaNames, kAquilaTypes);
constexpr Architecture kXverse = kin_of_llama(kXverseNames, kXverseTypes);
constexpr Architecture kSkywork = kin_of_llama(kSkyworkNames, kSkyworkTypes);
constexpr Architecture kInternlm = {
    .names = kInternlmNames,
    .model_types = kInternlmTypes,
    .prefix = "model.",
    .read_config = read_internlm,
    .fields = kInternlmFields,
    .tensors = kLlamaBlockTensors,
    .ignored = kRotaryTables,
};
constexpr Architecture kOrion = {
    .names = kOrionNames,
    .model_types = kOrionTypes,
    .prefix = "model.",
    .read_config = read_orion,
    .fields = kLlamaBlockFields,
    .tensors = kOrionTensors,
    .ignored = kRotaryTables,
};
constexpr Architecture kMiniCpm = {
    .names = kMinicpmNames,
    .model_types = kMinicpmTypes,
    .prefix = "model.",
    .read_config = read_minicpm,
    .fields = kMinicpmFields,
    .tensors = kLlamaBlockTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
