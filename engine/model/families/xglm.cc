// XGLM: OPT's block with positions that are sines and cosines, the first of them 2, and embeddings
// times the root of their width.
// Sources: models/xglm in `transformers`, https://arxiv.org/abs/2112.10668.
#include <array>
#include <cmath>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

ModelConfig read_xglm(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.hidden_size = "d_model",
                                                   .num_layers = "num_layers",
                                                   .num_heads = "attention_heads",
                                                   .num_kv_heads = "",
                                                   .head_dim = "",
                                                   .intermediate_size = "ffn_dim",
                                                   .norm_eps = "",
                                                   .activation = "activation_function",
                                                   .default_vocab_size = 256008,
                                                   .default_hidden_size = 1024,
                                                   .default_num_layers = 24,
                                                   .default_num_heads = 16,
                                                   .default_intermediate = 4096,
                                                   .default_max_positions = 2048,
                                                   .default_norm_eps = 1e-5,
                                                   .default_activation = "gelu",
                                                   .default_tied = true,
                                                   .default_bos = 0});
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  if (model.hidden_size < 4) check_size(config, "d_model", 0, kMaxHiddenSize);
  model.sinusoids = {.steps = model.hidden_size / 2 - 1, .first_position = 2};
  if (config.boolean_or("scale_embedding", true)) {
    model.embedding_multiplier = std::sqrt(static_cast<float>(model.hidden_size));
  }
  return model;
}

constexpr auto kXglmFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("d_model"),
    read("ffn_dim"),
    read("num_layers"),
    read("attention_heads"),
    read("activation_function"),
    read("max_position_embeddings"),
    read("scale_embedding"),
    read_or_null("tie_word_embeddings"),
    harmless_if("add_cross_attention", "[false]", "there is nothing else to attend to"),
    harmless("decoder_start_token_id", "is of models with an encoder"),
    harmless("layerdrop", kOnlyTraining),
    harmless("dropout", kOnlyTraining),
    harmless("activation_dropout", kOnlyTraining),
    harmless("init_std", kOnlyTraining),
});
constexpr auto kXglmAliases = std::to_array<FieldAlias>({
    {"hidden_size", "d_model"},
    {"num_hidden_layers", "num_layers"},
    {"num_attention_heads", "attention_heads"},
});

constexpr auto kXglmNames = std::to_array<std::string_view>({"XGLMForCausalLM"});
constexpr auto kXglmTypes = std::to_array<std::string_view>({"xglm"});

constexpr auto kXglmTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "model.embed_tokens.weight", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "model.layer_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "model.layer_norm.bias", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "model.layers.{layer}.self_attn_layer_norm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kAttentionNormBias, "model.layers.{layer}.self_attn_layer_norm.bias", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNorm, "model.layers.{layer}.final_layer_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNormBias, "model.layers.{layer}.final_layer_norm.bias", Dim::kOne, Dim::kHidden},
    {Role::kQ, "model.layers.{layer}.self_attn.q_proj.weight", Dim::kQ, Dim::kHidden, Split::kRows},
    {Role::kQBias, "model.layers.{layer}.self_attn.q_proj.bias", Dim::kOne, Dim::kQ, Split::kRows},
    {Role::kK, "model.layers.{layer}.self_attn.k_proj.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kKBias, "model.layers.{layer}.self_attn.k_proj.bias", Dim::kOne, Dim::kKv, Split::kRows},
    {Role::kV, "model.layers.{layer}.self_attn.v_proj.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kVBias, "model.layers.{layer}.self_attn.v_proj.bias", Dim::kOne, Dim::kKv, Split::kRows},
    {Role::kO, "model.layers.{layer}.self_attn.out_proj.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kOBias, "model.layers.{layer}.self_attn.out_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
    {Role::kUp, "model.layers.{layer}.fc1.weight", Dim::kIntermediate, Dim::kHidden, Split::kRows},
    {Role::kUpBias, "model.layers.{layer}.fc1.bias", Dim::kOne, Dim::kIntermediate, Split::kRows},
    {Role::kDown, "model.layers.{layer}.fc2.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
    {Role::kDownBias, "model.layers.{layer}.fc2.bias", Dim::kOne, Dim::kHidden, Split::kColumns},
});
// Older checkpoints hold the sines.
constexpr auto kXglmIgnored = std::to_array<std::string_view>({"model.embed_positions.*"});

}  // namespace

extern const Architecture kXglm;
constexpr Architecture kXglm = {
    .names = kXglmNames,
    .model_types = kXglmTypes,
    .prefix = "model.",
    .read_config = read_xglm,
    .fields = kXglmFields,
    .aliases = kXglmAliases,
    .tensors = kXglmTensors,
    .ignored = kXglmIgnored,
};

}  // namespace tgi
