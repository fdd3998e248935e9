// GPT-NeoX and Pythia: LayerNorm, one matrix that keeps each head's q, k and v together, a part of
// the head rotated, branches in parallel with a norm each.
// Source: models/gpt_neox in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/neox_fields.h"

namespace tgi {
namespace {

ModelConfig read_gpt_neox(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.num_kv_heads = "",
                                                   .head_dim = "",
                                                   .norm_eps = "layer_norm_eps",
                                                   .default_vocab_size = 50432,
                                                   .default_hidden_size = 6144,
                                                   .default_num_layers = 44,
                                                   .default_num_heads = 64,
                                                   .default_intermediate = 24576,
                                                   .default_norm_eps = 1e-5,
                                                   .default_activation = "gelu",
                                                   .default_bos = 0});
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.attention_bias = config.boolean_or("attention_bias", true);
  model.parallel_branches = config.boolean_or("use_parallel_residual", true);
  read_neox_rope(config, 0.25, model);
  return model;
}

constexpr auto kGptNeoxFields = join_fields(kNeoxFields,
                                            std::to_array<KnownField>({
                                                read("intermediate_size"),
                                                read("attention_bias"),
                                                read("use_parallel_residual"),
                                            }));

constexpr auto kGptNeoxNames = std::to_array<std::string_view>({"GPTNeoXForCausalLM"});
constexpr auto kGptNeoxTypes = std::to_array<std::string_view>({"gpt_neox"});

constexpr auto kGptNeoxTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "gpt_neox.embed_in.weight", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "gpt_neox.final_layer_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "gpt_neox.final_layer_norm.bias", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "embed_out.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "gpt_neox.layers.{layer}.input_layernorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kAttentionNormBias, "gpt_neox.layers.{layer}.input_layernorm.bias", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNorm, "gpt_neox.layers.{layer}.post_attention_layernorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNormBias, "gpt_neox.layers.{layer}.post_attention_layernorm.bias", Dim::kOne,
     Dim::kHidden},
    {Role::kQkv, "gpt_neox.layers.{layer}.attention.query_key_value.weight", Dim::kQkvByKvHead,
     Dim::kHidden, Split::kRows},
    {Role::kQkvBias, "gpt_neox.layers.{layer}.attention.query_key_value.bias", Dim::kOne,
     Dim::kQkvByKvHead, Split::kRows, has_attention_bias},
    {Role::kO, "gpt_neox.layers.{layer}.attention.dense.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kOBias, "gpt_neox.layers.{layer}.attention.dense.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, has_attention_bias},
    {Role::kUp, "gpt_neox.layers.{layer}.mlp.dense_h_to_4h.weight", Dim::kIntermediate,
     Dim::kHidden, Split::kRows},
    {Role::kUpBias, "gpt_neox.layers.{layer}.mlp.dense_h_to_4h.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows},
    {Role::kDown, "gpt_neox.layers.{layer}.mlp.dense_4h_to_h.weight", Dim::kHidden,
     Dim::kIntermediate, Split::kColumns},
    {Role::kDownBias, "gpt_neox.layers.{layer}.mlp.dense_4h_to_h.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
});

// As `transformers` calls them within.
constexpr auto kNeoxRenames = std::to_array<TensorRename>({
    {"lm_head.", "embed_out."},
});

}  // namespace

extern const Architecture kGptNeox;
constexpr Architecture kGptNeox = {
    .names = kGptNeoxNames,
    .model_types = kGptNeoxTypes,
    .prefix = "gpt_neox.",
    .read_config = read_gpt_neox,
    .fields = kGptNeoxFields,
    .tensors = kGptNeoxTensors,
    .renames = kNeoxRenames,
    .ignored = kNeoxIgnored,
};

}  // namespace tgi
