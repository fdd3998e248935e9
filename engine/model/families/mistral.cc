// Mistral and Ministral: Llama's block with a sliding window in every layer, or in those that
// layer_types names.
// Source: models/mistral and models/ministral in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_config(const JsonReader& config) {
  ModelConfig model = read_decoder_config(
      config,
      {.default_num_kv_heads = 8, .default_intermediate = 14336, .default_max_positions = 131072});
  read_windows(config, {}, model);
  read_rope(config, model);
  return model;
}

constexpr auto kFields = join_fields(
    kDecoderFields,
    std::to_array<KnownField>({
        read_or_null("sliding_window"),
        read_or_null("layer_types"),
        harmless_if("use_sliding_window", "[true]", "sliding_window alone says it, null is none"),
        harmless_if("attention_bias", "[false]", "there are no biases"),
        harmless_if("qkv_bias", "[false]", "there are no biases"),
        harmless_if("mlp_bias", "[false]", "there are no biases"),
    }));

constexpr auto kNames =
    std::to_array<std::string_view>({"MistralForCausalLM", "MinistralForCausalLM"});
constexpr auto kModelTypes = std::to_array<std::string_view>({"mistral", "ministral"});

constexpr auto kTied = &ModelConfig::tied_embeddings;

constexpr auto kTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "model.embed_tokens.weight", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "model.norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, nullptr, kTied},
    {Role::kAttentionNorm, "model.layers.{layer}.input_layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kQ, "model.layers.{layer}.self_attn.q_proj.weight", Dim::kQ, Dim::kHidden, Split::kRows},
    {Role::kK, "model.layers.{layer}.self_attn.k_proj.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kV, "model.layers.{layer}.self_attn.v_proj.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kO, "model.layers.{layer}.self_attn.o_proj.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kMlpNorm, "model.layers.{layer}.post_attention_layernorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kGate, "model.layers.{layer}.mlp.gate_proj.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kUp, "model.layers.{layer}.mlp.up_proj.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kDown, "model.layers.{layer}.mlp.down_proj.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
});

// Old checkpoints carry the rotary tables.
constexpr auto kIgnored = std::to_array<std::string_view>({".rotary_emb.inv_freq"});

}  // namespace

extern const Architecture kMistral;
constexpr Architecture kMistral = {
    .names = kNames,
    .model_types = kModelTypes,
    .prefix = "model.",
    .read_config = read_config,
    .fields = kFields,
    .tensors = kTensors,
    .ignored = kIgnored,
};

}  // namespace tgi
