// Llama 1 to 3 and the many models that took its block as it is.
// Source: models/llama in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_config(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

constexpr auto kFields = join_fields(
    kDecoderFields,
    std::to_array<KnownField>({
        read_or_null("attention_bias"),
        read_or_null("mlp_bias"),
        read_or_null("layer_types"),
        read_or_null("sliding_window"),
        read_or_null("use_sliding_window"),
        harmless("max_window_layers", "says where windows begin, and there are none"),
        harmless_if("qkv_bias", "[false]", "attention_bias says which biases there are"),
        harmless_if("bias", "[false]", "attention_bias and mlp_bias say which biases there are"),
    }));

constexpr auto kModelTypes = std::to_array<std::string_view>({"llama"});

constexpr auto kNames = std::to_array<std::string_view>({"LlamaForCausalLM", "LLaMAForCausalLM"});

constexpr auto kTied = &ModelConfig::tied_embeddings;
constexpr auto kAttentionBias = &ModelConfig::attention_bias;
constexpr auto kMlpBias = &ModelConfig::mlp_bias;

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
    {Role::kQBias, "model.layers.{layer}.self_attn.q_proj.bias", Dim::kOne, Dim::kQ, Split::kRows,
     kAttentionBias},
    {Role::kKBias, "model.layers.{layer}.self_attn.k_proj.bias", Dim::kOne, Dim::kKv, Split::kRows,
     kAttentionBias},
    {Role::kVBias, "model.layers.{layer}.self_attn.v_proj.bias", Dim::kOne, Dim::kKv, Split::kRows,
     kAttentionBias},
    {Role::kO, "model.layers.{layer}.self_attn.o_proj.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kOBias, "model.layers.{layer}.self_attn.o_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, kAttentionBias},
    {Role::kMlpNorm, "model.layers.{layer}.post_attention_layernorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kGate, "model.layers.{layer}.mlp.gate_proj.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kUp, "model.layers.{layer}.mlp.up_proj.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kDown, "model.layers.{layer}.mlp.down_proj.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
    {Role::kGateBias, "model.layers.{layer}.mlp.gate_proj.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows, kMlpBias},
    {Role::kUpBias, "model.layers.{layer}.mlp.up_proj.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows, kMlpBias},
    {Role::kDownBias, "model.layers.{layer}.mlp.down_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, kMlpBias},
});

// Old checkpoints carry the rotary tables.
constexpr auto kIgnored = std::to_array<std::string_view>({".rotary_emb.inv_freq"});

}  // namespace

extern const Architecture kLlama;
constexpr Architecture kLlama = {
    .names = kNames,
    .model_types = kModelTypes,
    .prefix = "model.",
    .read_config = read_config,
    .fields = kFields,
    .tensors = kTensors,
    .ignored = kIgnored,
};

}  // namespace tgi
