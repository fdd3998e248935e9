// Qwen 1.5, 2 and 2.5: Llama's block with biases on q, k and v, and a sliding window in some layers
// if asked for.
// Source: models/qwen2 in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_config(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 151936,
                                                   .default_num_kv_heads = 32,
                                                   .default_intermediate = 22016,
                                                   .default_max_positions = 32768,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  read_windows(config, {.by_switch = true}, model);
  read_rope(config, model);
  return model;
}

constexpr auto kFields = join_fields(
    kDecoderFields,
    std::to_array<KnownField>({
        read_or_null("use_sliding_window"),
        read_or_null("sliding_window"),
        read_or_null("max_window_layers"),
        read_or_null("layer_types"),
        harmless_if("attention_bias", "[true]", "q, k and v have biases, o has none"),
        harmless_if("qkv_bias", "[true]", "q, k and v have biases, o has none"),
        harmless_if("mlp_bias", "[false]", "there are no biases but those of q, k and v"),
    }));

constexpr auto kModelTypes = std::to_array<std::string_view>({"qwen2"});

constexpr auto kNames = std::to_array<std::string_view>({"Qwen2ForCausalLM"});

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
    {Role::kQBias, "model.layers.{layer}.self_attn.q_proj.bias", Dim::kOne, Dim::kQ, Split::kRows},
    {Role::kKBias, "model.layers.{layer}.self_attn.k_proj.bias", Dim::kOne, Dim::kKv, Split::kRows},
    {Role::kVBias, "model.layers.{layer}.self_attn.v_proj.bias", Dim::kOne, Dim::kKv, Split::kRows},
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

extern const Architecture kQwen2;
constexpr Architecture kQwen2 = {
    .names = kNames,
    .model_types = kModelTypes,
    .prefix = "model.",
    .read_config = read_config,
    .fields = kFields,
    .tensors = kTensors,
    .ignored = kIgnored,
};

}  // namespace tgi
