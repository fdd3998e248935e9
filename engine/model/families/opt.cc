// OPT and Galactica: learned positions that begin two rows into their table, LayerNorms before the
// branches, or of the stream after them, biases everywhere if not said otherwise; embeddings that
// are not as wide as the stream are projected to it, and back before the head.
// Source: models/opt in `transformers`.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

constexpr auto kOptFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("ffn_dim"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read("activation_function"),
    read("max_position_embeddings"),
    read_or_null("tie_word_embeddings"),
    read_or_null("word_embed_proj_dim"),
    read("do_layer_norm_before"),
    read("enable_bias"),
    read("layer_norm_elementwise_affine"),
    harmless("dropout", kOnlyTraining),
    harmless("activation_dropout", kOnlyTraining),
    harmless("layerdrop", kOnlyTraining),
    harmless("init_std", kOnlyTraining),
    harmless_if("prefix", R"(["", "</s>"])", "the tokenizer puts </s> before a prompt, no more"),
    harmless_if("_remove_final_layer_norm", "[false]", "there is a norm before the head"),
    harmless_if("learned_embeddings", "[true]", "positions have learned embeddings"),
    harmless_if("scale_embeddings", "[false]", "embeddings are taken as they are"),
});

ModelConfig read_opt(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.num_kv_heads = "",
                                                   .head_dim = "",
                                                   .intermediate_size = "ffn_dim",
                                                   .norm_eps = "",
                                                   .activation = "activation_function",
                                                   .default_vocab_size = 50272,
                                                   .default_hidden_size = 768,
                                                   .default_num_layers = 12,
                                                   .default_num_heads = 12,
                                                   .default_intermediate = 3072,
                                                   .default_norm_eps = 1e-5,
                                                   .default_activation = "relu",
                                                   .default_tied = true,
                                                   .default_bos = 2});
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.learned_positions = true;
  model.position_offset = 2;
  model.attention_bias = config.boolean_or("enable_bias", true);
  model.mlp_bias = model.attention_bias;
  model.residual_after_norm = !config.boolean_or("do_layer_norm_before", true);
  model.norms_have_weights = config.boolean_or("layer_norm_elementwise_affine", true);
  if (model.residual_after_norm && !model.norms_have_weights) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: false is not supported where do_layer_norm_before is false",
                            config.path_of("layer_norm_elementwise_affine")));
  }
  const int32_t width = read_size(config, "word_embed_proj_dim", model.hidden_size, kMaxHiddenSize);
  if (width != model.hidden_size) model.embedding_size = width;
  return model;
}

constexpr auto kOptNames = std::to_array<std::string_view>({"OPTForCausalLM"});
constexpr auto kOptTypes = std::to_array<std::string_view>({"opt"});

// The norm after a layer is in its place for the forward pass that before the next layer.
constexpr bool is_before(const ModelConfig& config, int32_t /*layer*/) {
  return !config.residual_after_norm && config.norms_have_weights;
}
constexpr bool is_after(const ModelConfig& config, int32_t /*layer*/) {
  return config.residual_after_norm;
}
constexpr bool is_after_another(const ModelConfig& config, int32_t layer) {
  return config.residual_after_norm && layer > 0;
}

constexpr bool has_projections(const ModelConfig& config, int32_t /*layer*/) {
  return config.embedding_size > 0;
}

constexpr auto kOptTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "model.decoder.embed_tokens.weight", Dim::kVocab, Dim::kEmbedding},
    {Role::kEmbeddingIn, "model.decoder.project_in.weight", Dim::kHidden, Dim::kEmbedding,
     Split::kNone, has_projections},
    {Role::kHeadIn, "model.decoder.project_out.weight", Dim::kEmbedding, Dim::kHidden, Split::kNone,
     has_projections},
    {Role::kPositionEmbedding, "model.decoder.embed_positions.weight", Dim::kPositions,
     Dim::kHidden},
    {Role::kFinalNorm, "model.decoder.final_layer_norm.weight", Dim::kOne, Dim::kHidden,
     Split::kNone, is_before},
    {Role::kFinalNormBias, "model.decoder.final_layer_norm.bias", Dim::kOne, Dim::kHidden,
     Split::kNone, is_before},
    {Role::kFinalNorm, "model.decoder.layers.{last}.final_layer_norm.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, is_after},
    {Role::kFinalNormBias, "model.decoder.layers.{last}.final_layer_norm.bias", Dim::kOne,
     Dim::kHidden, Split::kNone, is_after},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kEmbedding, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "model.decoder.layers.{layer}.self_attn_layer_norm.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, is_before},
    {Role::kAttentionNormBias, "model.decoder.layers.{layer}.self_attn_layer_norm.bias", Dim::kOne,
     Dim::kHidden, Split::kNone, is_before},
    {Role::kMlpNorm, "model.decoder.layers.{layer}.final_layer_norm.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, is_before},
    {Role::kMlpNormBias, "model.decoder.layers.{layer}.final_layer_norm.bias", Dim::kOne,
     Dim::kHidden, Split::kNone, is_before},
    {Role::kAttentionNorm, "model.decoder.layers.{layer-1}.final_layer_norm.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, is_after_another},
    {Role::kAttentionNormBias, "model.decoder.layers.{layer-1}.final_layer_norm.bias", Dim::kOne,
     Dim::kHidden, Split::kNone, is_after_another},
    {Role::kMlpNorm, "model.decoder.layers.{layer}.self_attn_layer_norm.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, is_after},
    {Role::kMlpNormBias, "model.decoder.layers.{layer}.self_attn_layer_norm.bias", Dim::kOne,
     Dim::kHidden, Split::kNone, is_after},
    {Role::kQ, "model.decoder.layers.{layer}.self_attn.q_proj.weight", Dim::kQ, Dim::kHidden,
     Split::kRows},
    {Role::kQBias, "model.decoder.layers.{layer}.self_attn.q_proj.bias", Dim::kOne, Dim::kQ,
     Split::kRows, has_attention_bias},
    {Role::kK, "model.decoder.layers.{layer}.self_attn.k_proj.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kKBias, "model.decoder.layers.{layer}.self_attn.k_proj.bias", Dim::kOne, Dim::kKv,
     Split::kRows, has_attention_bias},
    {Role::kV, "model.decoder.layers.{layer}.self_attn.v_proj.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kVBias, "model.decoder.layers.{layer}.self_attn.v_proj.bias", Dim::kOne, Dim::kKv,
     Split::kRows, has_attention_bias},
    {Role::kO, "model.decoder.layers.{layer}.self_attn.out_proj.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kOBias, "model.decoder.layers.{layer}.self_attn.out_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, has_attention_bias},
    {Role::kUp, "model.decoder.layers.{layer}.fc1.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kUpBias, "model.decoder.layers.{layer}.fc1.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows, has_mlp_bias},
    {Role::kDown, "model.decoder.layers.{layer}.fc2.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
    {Role::kDownBias, "model.decoder.layers.{layer}.fc2.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, has_mlp_bias},
});

}  // namespace

extern const Architecture kOpt;
constexpr Architecture kOpt = {
    .names = kOptNames,
    .model_types = kOptTypes,
    .prefix = "model.",
    .read_config = read_opt,
    .fields = kOptFields,
    .tensors = kOptTensors,
    .ignored = {},
};

}  // namespace tgi
