// BLOOM: ALiBi, a norm of the embedding, one matrix that keeps each head's q, k and v together.
// Source: models/bloom in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/alibi.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

constexpr auto kBloomFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("n_layer"),
    read("n_head"),
    read("layer_norm_epsilon"),
    read("seq_length"),
    read_or_null("tie_word_embeddings"),
    read("apply_residual_connection_post_layernorm"),
    harmless_if("n_inner", "[]", "the MLP is four times as wide as the stream"),
    harmless("attention_softmax_in_fp32", "the softmax is always computed in float32"),
    harmless("offset_alibi", "moves all scores of a query alike, which changes no weight"),
    harmless("masked_softmax_fusion", kSameSums),
    harmless("bias_dropout_fusion", kSameSums),
    harmless("skip_bias_add", kSameSums),
    harmless("skip_bias_add_qkv", kSameSums),
    harmless("slow_but_exact", kSameSums),
    harmless("unk_token_id", "the tokenizer's own files say it"),
});

constexpr auto kBloomAliases = std::to_array<FieldAlias>({
    {"n_embed", "hidden_size"},
    {"num_hidden_layers", "n_layer"},
    {"num_attention_heads", "n_head"},
});

ModelConfig read_bloom(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.num_layers = "n_layer",
                                                   .num_heads = "n_head",
                                                   .num_kv_heads = "",
                                                   .head_dim = "",
                                                   .intermediate_size = "",
                                                   .max_positions = "seq_length",
                                                   .norm_eps = "layer_norm_epsilon",
                                                   .activation = "",
                                                   .default_vocab_size = 250880,
                                                   .default_hidden_size = 64,
                                                   .default_num_layers = 2,
                                                   .default_num_heads = 8,
                                                   .default_intermediate = 0,
                                                   .default_norm_eps = 1e-5,
                                                   .default_activation = "gelu_pytorch_tanh",
                                                   .default_tied = true});
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.residual_after_norm = config.boolean_or("apply_residual_connection_post_layernorm", false);
  model.alibi_slopes = alibi_slopes_of_lower_power(model.num_heads);
  return model;
}

constexpr auto kBloomNames = std::to_array<std::string_view>({"BloomForCausalLM"});
constexpr auto kBloomTypes = std::to_array<std::string_view>({"bloom"});

constexpr auto kBloomTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "transformer.word_embeddings.weight", Dim::kVocab, Dim::kHidden},
    {Role::kEmbeddingNorm, "transformer.word_embeddings_layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kEmbeddingNormBias, "transformer.word_embeddings_layernorm.bias", Dim::kOne,
     Dim::kHidden},
    {Role::kFinalNorm, "transformer.ln_f.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "transformer.ln_f.bias", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "transformer.h.{layer}.input_layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kAttentionNormBias, "transformer.h.{layer}.input_layernorm.bias", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNorm, "transformer.h.{layer}.post_attention_layernorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNormBias, "transformer.h.{layer}.post_attention_layernorm.bias", Dim::kOne,
     Dim::kHidden},
    {Role::kQkv, "transformer.h.{layer}.self_attention.query_key_value.weight", Dim::kQkvByKvHead,
     Dim::kHidden, Split::kRows},
    {Role::kQkvBias, "transformer.h.{layer}.self_attention.query_key_value.bias", Dim::kOne,
     Dim::kQkvByKvHead, Split::kRows},
    {Role::kO, "transformer.h.{layer}.self_attention.dense.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kOBias, "transformer.h.{layer}.self_attention.dense.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
    {Role::kUp, "transformer.h.{layer}.mlp.dense_h_to_4h.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kUpBias, "transformer.h.{layer}.mlp.dense_h_to_4h.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows},
    {Role::kDown, "transformer.h.{layer}.mlp.dense_4h_to_h.weight", Dim::kHidden,
     Dim::kIntermediate, Split::kColumns},
    {Role::kDownBias, "transformer.h.{layer}.mlp.dense_4h_to_h.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
});

}  // namespace

extern const Architecture kBloom;
constexpr Architecture kBloom = {
    .names = kBloomNames,
    .model_types = kBloomTypes,
    .prefix = "transformer.",
    .read_config = read_bloom,
    .fields = kBloomFields,
    .aliases = kBloomAliases,
    .tensors = kBloomTensors,
    .ignored = {},
};

}  // namespace tgi
