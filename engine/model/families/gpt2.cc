// GPT-2: learned positions, LayerNorm with bias, one fused and transposed matrix for q, k and v.
// Source: models/gpt2 in `transformers`.
#include <array>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"

namespace tgi {
namespace {

constexpr DecoderFields kFields = {
    .hidden_size = "n_embd",
    .num_layers = "n_layer",
    .num_heads = "n_head",
    .intermediate_size = "n_inner",
    .max_positions = "n_positions",
    .norm_eps = "layer_norm_epsilon",
    .activation = "activation_function",
    .default_intermediate_multiple = 4,
    .default_max_positions = 1024,
    .default_norm_eps = 1e-5,
    .default_activation = "gelu_new",
    .default_tied = true,
};

void refuse(const JsonReader& config, std::string_view key) {
  if (!config.boolean_or(key, false)) return;
  throw Error(Code::kUnsupported, config.path_of(key) + ": true is not supported");
}

ModelConfig read_config(const JsonReader& config) {
  refuse(config, "scale_attn_by_inverse_layer_idx");
  refuse(config, "add_cross_attention");
  ModelConfig model = read_decoder_config(config, kFields);
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.rotary = false;
  model.learned_positions = true;
  if (!config.boolean_or("scale_attn_weights", true)) model.attention_scale = 1.0F;
  return model;
}

constexpr auto kNames = std::to_array<std::string_view>({"GPT2LMHeadModel"});

constexpr auto kTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "transformer.wte.weight", Dim::kVocab, Dim::kHidden},
    {Role::kPositionEmbedding, "transformer.wpe.weight", Dim::kPositions, Dim::kHidden},
    {Role::kFinalNorm, "transformer.ln_f.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "transformer.ln_f.bias", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, nullptr,
     &ModelConfig::tied_embeddings},
    {Role::kAttentionNorm, "transformer.h.{layer}.ln_1.weight", Dim::kOne, Dim::kHidden},
    {Role::kAttentionNormBias, "transformer.h.{layer}.ln_1.bias", Dim::kOne, Dim::kHidden},
    {.role = Role::kQkv,
     .name = "transformer.h.{layer}.attn.c_attn.weight",
     .rows = Dim::kQkv,
     .cols = Dim::kHidden,
     .split = Split::kRows,
     .transposed = true},
    {Role::kQkvBias, "transformer.h.{layer}.attn.c_attn.bias", Dim::kOne, Dim::kQkv, Split::kRows},
    {.role = Role::kO,
     .name = "transformer.h.{layer}.attn.c_proj.weight",
     .rows = Dim::kHidden,
     .cols = Dim::kQ,
     .split = Split::kColumns,
     .transposed = true},
    {Role::kOBias, "transformer.h.{layer}.attn.c_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
    {Role::kMlpNorm, "transformer.h.{layer}.ln_2.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNormBias, "transformer.h.{layer}.ln_2.bias", Dim::kOne, Dim::kHidden},
    {.role = Role::kUp,
     .name = "transformer.h.{layer}.mlp.c_fc.weight",
     .rows = Dim::kIntermediate,
     .cols = Dim::kHidden,
     .split = Split::kRows,
     .transposed = true},
    {Role::kUpBias, "transformer.h.{layer}.mlp.c_fc.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows},
    {.role = Role::kDown,
     .name = "transformer.h.{layer}.mlp.c_proj.weight",
     .rows = Dim::kHidden,
     .cols = Dim::kIntermediate,
     .split = Split::kColumns,
     .transposed = true},
    {Role::kDownBias, "transformer.h.{layer}.mlp.c_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
});

// Causal masks that old checkpoints carry as buffers.
constexpr auto kIgnored = std::to_array<std::string_view>({".attn.bias", ".attn.masked_bias"});

}  // namespace

extern const Architecture kGpt2;
constexpr Architecture kGpt2 = {
    .names = kNames,
    .model_type = "gpt2",
    .prefix = "transformer.",
    .read_config = read_config,
    .tensors = kTensors,
    .ignored = kIgnored,
};

}  // namespace tgi
