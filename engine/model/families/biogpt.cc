// BioGPT: OPT's block under other names: learned positions that begin two rows into their table,
// embeddings times the root of their width, LayerNorms before the branches, biases everywhere.
// Source: models/biogpt in `transformers`.
#include <array>
#include <cmath>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

ModelConfig read_biogpt(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.num_kv_heads = "",
                                                   .head_dim = "",
                                                   .norm_eps = "",
                                                   .default_vocab_size = 42384,
                                                   .default_hidden_size = 1024,
                                                   .default_num_layers = 24,
                                                   .default_num_heads = 16,
                                                   .default_intermediate = 4096,
                                                   .default_max_positions = 1024,
                                                   .default_norm_eps = 1e-5,
                                                   .default_activation = "gelu",
                                                   .default_tied = true,
                                                   .default_bos = 0});
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.learned_positions = true;
  model.position_offset = 2;
  if (config.boolean_or("scale_embedding", true)) {
    model.embedding_multiplier = std::sqrt(static_cast<float>(model.hidden_size));
  }
  return model;
}

constexpr auto kBioGptFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("intermediate_size"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read("hidden_act"),
    read("max_position_embeddings"),
    read("scale_embedding"),
    read_or_null("tie_word_embeddings"),
    harmless("layer_norm_eps", "the norms have 1e-5, whatever it says"),
    harmless("layerdrop", kOnlyTraining),
    harmless("activation_dropout", kOnlyTraining),
});

constexpr auto kBioGptNames = std::to_array<std::string_view>({"BioGptForCausalLM"});
constexpr auto kBioGptTypes = std::to_array<std::string_view>({"biogpt"});

constexpr auto kBioGptTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "biogpt.embed_tokens.weight", Dim::kVocab, Dim::kHidden},
    {Role::kPositionEmbedding, "biogpt.embed_positions.weight", Dim::kPositions, Dim::kHidden},
    {Role::kFinalNorm, "biogpt.layer_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "biogpt.layer_norm.bias", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "output_projection.weight", Dim::kVocab, Dim::kHidden, Split::kNone,
     has_own_head},
    {Role::kAttentionNorm, "biogpt.layers.{layer}.self_attn_layer_norm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kAttentionNormBias, "biogpt.layers.{layer}.self_attn_layer_norm.bias", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNorm, "biogpt.layers.{layer}.final_layer_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNormBias, "biogpt.layers.{layer}.final_layer_norm.bias", Dim::kOne, Dim::kHidden},
    {Role::kQ, "biogpt.layers.{layer}.self_attn.q_proj.weight", Dim::kQ, Dim::kHidden,
     Split::kRows},
    {Role::kQBias, "biogpt.layers.{layer}.self_attn.q_proj.bias", Dim::kOne, Dim::kQ, Split::kRows},
    {Role::kK, "biogpt.layers.{layer}.self_attn.k_proj.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kKBias, "biogpt.layers.{layer}.self_attn.k_proj.bias", Dim::kOne, Dim::kKv,
     Split::kRows},
    {Role::kV, "biogpt.layers.{layer}.self_attn.v_proj.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kVBias, "biogpt.layers.{layer}.self_attn.v_proj.bias", Dim::kOne, Dim::kKv,
     Split::kRows},
    {Role::kO, "biogpt.layers.{layer}.self_attn.out_proj.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kOBias, "biogpt.layers.{layer}.self_attn.out_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
    {Role::kUp, "biogpt.layers.{layer}.fc1.weight", Dim::kIntermediate, Dim::kHidden, Split::kRows},
    {Role::kUpBias, "biogpt.layers.{layer}.fc1.bias", Dim::kOne, Dim::kIntermediate, Split::kRows},
    {Role::kDown, "biogpt.layers.{layer}.fc2.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
    {Role::kDownBias, "biogpt.layers.{layer}.fc2.bias", Dim::kOne, Dim::kHidden, Split::kColumns},
});

}  // namespace

extern const Architecture kBioGpt;
constexpr Architecture kBioGpt = {
    .names = kBioGptNames,
    .model_types = kBioGptTypes,
    .prefix = "biogpt.",
    .read_config = read_biogpt,
    .fields = kBioGptFields,
    .tensors = kBioGptTensors,
    .ignored = {},
};

}  // namespace tgi
