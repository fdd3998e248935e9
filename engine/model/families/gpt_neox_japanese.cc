// GPT-NeoX Japanese: GPT-NeoX's matrices without biases, but for what the last layer's attention
// adds, and branches one after the other. Source: models/gpt_neox_japanese in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/neox_fields.h"

namespace tgi {
namespace {

constexpr std::string_view kMultiple = "intermediate_multiple_size";

ModelConfig read_gpt_neox_japanese(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.num_kv_heads = "",
                                                   .head_dim = "",
                                                   .norm_eps = "layer_norm_eps",
                                                   .default_hidden_size = 2560,
                                                   .default_intermediate = 0,
                                                   .default_norm_eps = 1e-5,
                                                   .default_activation = "gelu",
                                                   .default_tied = true,
                                                   .default_bos = 31996,
                                                   .default_eos = 31999});
  const int32_t multiple = read_size(config, kMultiple, 4, kMaxIntermediateSize);
  model.intermediate_size =
      check_size(config, kMultiple, int64_t{multiple} * model.hidden_size, kMaxIntermediateSize);
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  read_neox_rope(config, 1.0, model);
  return model;
}

constexpr bool is_last_layer(const ModelConfig& config, int32_t layer) {
  return layer == config.num_layers - 1;
}

constexpr auto kGptNeoxJapaneseFields = join_fields(kNeoxFields,
                                                    std::to_array<KnownField>({
                                                        read("intermediate_multiple_size"),
                                                    }));

constexpr auto kGptNeoxJapaneseNames =
    std::to_array<std::string_view>({"GPTNeoXJapaneseForCausalLM"});
constexpr auto kGptNeoxJapaneseTypes = std::to_array<std::string_view>({"gpt_neox_japanese"});

constexpr auto kGptNeoxJapaneseTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "gpt_neox_japanese.embed_in.weight", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "gpt_neox_japanese.final_layer_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "gpt_neox_japanese.final_layer_norm.bias", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "embed_out.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "gpt_neox_japanese.layers.{layer}.input_layernorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kAttentionNormBias, "gpt_neox_japanese.layers.{layer}.input_layernorm.bias", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNorm, "gpt_neox_japanese.layers.{layer}.post_attention_layernorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNormBias, "gpt_neox_japanese.layers.{layer}.post_attention_layernorm.bias",
     Dim::kOne, Dim::kHidden},
    {Role::kQkv, "gpt_neox_japanese.layers.{layer}.attention.query_key_value.weight",
     Dim::kQkvByKvHead, Dim::kHidden, Split::kRows},
    {Role::kO, "gpt_neox_japanese.layers.{layer}.attention.dense.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kOBias, "gpt_neox_japanese.layers.{layer}.attention.dense_bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, is_last_layer},
    {Role::kUp, "gpt_neox_japanese.layers.{layer}.mlp.dense_h_to_4h.weight", Dim::kIntermediate,
     Dim::kHidden, Split::kRows},
    {Role::kDown, "gpt_neox_japanese.layers.{layer}.mlp.dense_4h_to_h.weight", Dim::kHidden,
     Dim::kIntermediate, Split::kColumns},
});

}  // namespace

extern const Architecture kGptNeoxJapanese;
constexpr Architecture kGptNeoxJapanese = {
    .names = kGptNeoxJapaneseNames,
    .model_types = kGptNeoxJapaneseTypes,
    .prefix = "gpt_neox_japanese.",
    .read_config = read_gpt_neox_japanese,
    .fields = kGptNeoxJapaneseFields,
    .tensors = kGptNeoxJapaneseTensors,
    .ignored = kNeoxIgnored,
};

}  // namespace tgi
