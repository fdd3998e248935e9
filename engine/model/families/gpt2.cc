// GPT-2: learned positions, LayerNorm with bias, one fused and transposed matrix for q, k and v.
// Source: models/gpt2 in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

constexpr DecoderFields kDecoder = {
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

constexpr std::string_view kSummary = "belongs to a classifier's head, which is not used here";

constexpr auto kFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("n_embd"),
    read("n_layer"),
    read("n_head"),
    read_or_null("n_inner"),
    read("n_positions"),
    read("layer_norm_epsilon"),
    read("activation_function"),
    read("tie_word_embeddings"),
    read("scale_attn_weights"),
    harmless_if(
        "scale_attn_by_inverse_layer_idx", "[false]", "the scores of every layer are scaled alike"),
    harmless("reorder_and_upcast_attn", "computes the same sums in float32, as is done here"),
    harmless("n_ctx", "the context is that of n_positions"),
    harmless("predict_special_tokens", "is read by no version of the model"),
    harmless("summary_type", kSummary),
    harmless("summary_use_proj", kSummary),
    harmless("summary_activation", kSummary),
    harmless("summary_proj_to_labels", kSummary),
    harmless("summary_first_dropout", kSummary),
    harmless("summary_last_dropout", kSummary),
});

// The names that the fields have in other models; transformers takes them too.
constexpr auto kAliases = std::to_array<FieldAlias>({
    {"hidden_size", "n_embd"},
    {"max_position_embeddings", "n_positions"},
    {"num_attention_heads", "n_head"},
    {"num_hidden_layers", "n_layer"},
});

ModelConfig read_config(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kDecoder);
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.learned_positions = true;
  if (!config.boolean_or("scale_attn_weights", true)) model.attention_scale = 1.0F;
  return model;
}

constexpr auto kNames = std::to_array<std::string_view>({"GPT2LMHeadModel"});
constexpr auto kModelTypes = std::to_array<std::string_view>({"gpt2"});

constexpr auto kTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "transformer.wte.weight", Dim::kVocab, Dim::kHidden},
    {Role::kPositionEmbedding, "transformer.wpe.weight", Dim::kPositions, Dim::kHidden},
    {Role::kFinalNorm, "transformer.ln_f.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "transformer.ln_f.bias", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
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
    .model_types = kModelTypes,
    .prefix = "transformer.",
    .read_config = read_config,
    .fields = kFields,
    .aliases = kAliases,
    .tensors = kTensors,
    .ignored = kIgnored,
};

}  // namespace tgi
