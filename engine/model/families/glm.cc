// GLM 4 as transformers has it, and GLM-4-0414, which norms the branches too: gate and up are one
// matrix, and of half of a head neighbours are rotated.
// Source: models/glm and models/glm4 in `transformers`.
#include <array>
#include <string_view>
#include <vector>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kGlmDecoder = {
    .default_vocab_size = 151552,
    .default_num_layers = 40,
    .default_num_kv_heads = 2,
    .default_head_dim = 128,
    .default_intermediate = 13696,
    .default_max_positions = 131072,
    .default_norm_eps = 1.5625e-07,
    .default_bos = -1,
    .default_eos = -1,
};

constexpr int32_t kDefaultEos[] = {151329, 151336, 151338};

ModelConfig read_glm(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kGlmDecoder);
  if (!config.json().contains("eos_token_id")) {
    for (const int32_t id : kDefaultEos) {
      if (id < model.vocab_size) model.eos_token_ids.push_back(id);
    }
  }
  model.attention_bias = config.boolean_or("attention_bias", true);
  read_rope(config, model, {.interleaved = true, .takes_partial = true, .default_partial = 0.5});
  refuse_windows(config, model);
  return model;
}

constexpr auto kGlmFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("layer_types"),
                    read_or_null("sliding_window"),
                    read_or_null("use_sliding_window"),
                    harmless_if("rope_interleaved", "[true]", "neighbours of a head are rotated"),
                    harmless_if("rope_traditional", "[true]", "neighbours of a head are rotated"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                }),
                kDecoderFields);

constexpr auto kGlmNames = std::to_array<std::string_view>({"GlmForCausalLM"});
constexpr auto kGlmTypes = std::to_array<std::string_view>({"glm"});
constexpr auto kNames4 = std::to_array<std::string_view>({"Glm4ForCausalLM"});
constexpr auto kModelTypes4 = std::to_array<std::string_view>({"glm4"});

constexpr auto kGlmBlockTensors = join_tensors(kLlamaOuterTensors,
                                               kLlamaNormTensors,
                                               kLlamaAttentionTensors,
                                               kLlamaQkvBiasTensors,
                                               kFusedMlpTensors);

constexpr auto kTensors4 = join_tensors(
    kGlmBlockTensors,
    std::to_array<TensorSpec>({
        {Role::kAttentionPostNorm, "model.layers.{layer}.post_self_attn_layernorm.weight",
         Dim::kOne, Dim::kHidden},
        {Role::kMlpPostNorm, "model.layers.{layer}.post_mlp_layernorm.weight", Dim::kOne,
         Dim::kHidden},
    }));

}  // namespace

extern const Architecture kGlm;
constexpr Architecture kGlm = {
    .names = kGlmNames,
    .model_types = kGlmTypes,
    .prefix = "model.",
    .read_config = read_glm,
    .fields = kGlmFields,
    .tensors = kGlmBlockTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kGlm4;
constexpr Architecture kGlm4 = {
    .names = kNames4,
    .model_types = kModelTypes4,
    .prefix = "model.",
    .read_config = read_glm,
    .fields = kGlmFields,
    .tensors = kTensors4,
    .ignored = kRotaryTables,
};

}  // namespace tgi
