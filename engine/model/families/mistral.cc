// Mistral: Llama's block with a sliding window in every layer.
// Source: models/mistral in `transformers`.
#include <array>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_config(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_max_positions = 131072});
  // Absent means 4096 tokens, an explicit null means no window (Mistral 7B v0.2 and later).
  if (config.has("sliding_window")) {
    model.sliding_window = read_size(config, "sliding_window", kMaxPositions);
  } else if (!config.json().contains("sliding_window")) {
    model.sliding_window = 4096;
  }
  read_rope(config, model);
  return model;
}

constexpr auto kNames = std::to_array<std::string_view>({"MistralForCausalLM"});

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
    .model_type = "mistral",
    .prefix = "model.",
    .read_config = read_config,
    .tensors = kTensors,
    .ignored = kIgnored,
};

}  // namespace tgi
