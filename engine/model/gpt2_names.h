// What the models that came from GPT-2 share: its names of fields and tensors.
#pragma once

#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {

inline constexpr DecoderFields kGpt2Decoder = {
    .hidden_size = "n_embd",
    .num_layers = "n_layer",
    .num_heads = "n_head",
    .num_kv_heads = "",
    .head_dim = "",
    .intermediate_size = "n_inner",
    .max_positions = "n_positions",
    .norm_eps = "layer_norm_epsilon",
    .activation = "activation_function",
    .default_vocab_size = 50257,
    .default_hidden_size = 768,
    .default_num_layers = 12,
    .default_num_heads = 12,
    .default_intermediate = 0,
    .default_max_positions = 1024,
    .default_norm_eps = 1e-5,
    .default_activation = "gelu_new",
    .default_tied = true,
    .default_bos = 50256,
    .default_eos = 50256,
};

inline constexpr std::string_view kSummaryFields =
    "belongs to a classifier's head, which is not used here";

inline constexpr auto kGpt2Fields = std::to_array<KnownField>({
    read("vocab_size"),
    read("n_embd"),
    read("n_layer"),
    read("n_head"),
    read_or_null("n_inner"),
    read("n_positions"),
    read("layer_norm_epsilon"),
    read("activation_function"),
    read("tie_word_embeddings"),
    harmless("n_ctx", "the context is that of n_positions"),
    harmless("predict_special_tokens", "is read by no version of the model"),
    harmless("summary_type", kSummaryFields),
    harmless("summary_use_proj", kSummaryFields),
    harmless("summary_activation", kSummaryFields),
    harmless("summary_proj_to_labels", kSummaryFields),
    harmless("summary_first_dropout", kSummaryFields),
    harmless("summary_last_dropout", kSummaryFields),
});

// The names that the fields have in other models; transformers takes them too.
inline constexpr auto kGpt2Aliases = std::to_array<FieldAlias>({
    {"hidden_size", "n_embd"},
    {"max_position_embeddings", "n_positions"},
    {"num_attention_heads", "n_head"},
    {"num_hidden_layers", "n_layer"},
});

// Embedding, last norm and head, and the first norm of a layer.
inline constexpr auto kGpt2OuterTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "transformer.wte.weight", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "transformer.ln_f.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "transformer.ln_f.bias", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "transformer.h.{layer}.ln_1.weight", Dim::kOne, Dim::kHidden},
    {Role::kAttentionNormBias, "transformer.h.{layer}.ln_1.bias", Dim::kOne, Dim::kHidden},
});

// Biases of what the branches add, and of the MLP's first matrix.
inline constexpr auto kGpt2BranchBiasTensors = std::to_array<TensorSpec>({
    {Role::kOBias, "transformer.h.{layer}.attn.c_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
    {Role::kUpBias, "transformer.h.{layer}.mlp.c_fc.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows},
    {Role::kDownBias, "transformer.h.{layer}.mlp.c_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
});

// Positions, the second norm and biases, but that of q, k and v.
inline constexpr auto kGpt2InnerTensors = join_tensors(
    std::to_array<TensorSpec>({
        {Role::kPositionEmbedding, "transformer.wpe.weight", Dim::kPositions, Dim::kHidden},
        {Role::kMlpNorm, "transformer.h.{layer}.ln_2.weight", Dim::kOne, Dim::kHidden},
        {Role::kMlpNormBias, "transformer.h.{layer}.ln_2.bias", Dim::kOne, Dim::kHidden},
    }),
    kGpt2BranchBiasTensors);

// The matrices, as Conv1D stores them, with q, k and v in one.
inline constexpr auto kGpt2MatrixTensors = std::to_array<TensorSpec>({
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
    {.role = Role::kUp,
     .name = "transformer.h.{layer}.mlp.c_fc.weight",
     .rows = Dim::kIntermediate,
     .cols = Dim::kHidden,
     .split = Split::kRows,
     .transposed = true},
    {.role = Role::kDown,
     .name = "transformer.h.{layer}.mlp.c_proj.weight",
     .rows = Dim::kHidden,
     .cols = Dim::kIntermediate,
     .split = Split::kColumns,
     .transposed = true},
});

// Causal masks that old checkpoints carry as buffers.
inline constexpr auto kGpt2Ignored =
    std::to_array<std::string_view>({".attn.bias", ".attn.masked_bias"});

}  // namespace tgi
