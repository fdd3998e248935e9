// Persimmon: GPT-NeoX's matrices one after the other behind LayerNorms, LayerNorms of the heads of
// q and k too, half of a head rotated. Source: models/persimmon in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_persimmon(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.num_kv_heads = "",
                                                   .head_dim = "",
                                                   .norm_eps = "layer_norm_eps",
                                                   .default_vocab_size = 262144,
                                                   .default_num_layers = 36,
                                                   .default_num_heads = 64,
                                                   .default_intermediate = 16384,
                                                   .default_max_positions = 16384,
                                                   .default_norm_eps = 1e-5,
                                                   .default_activation = "relu2"});
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.has_qk_norm = config.boolean_or("qk_layernorm", true);
  model.qk_norm_kind = NormKind::kLayer;
  read_rope(config, model, {.takes_partial = true, .default_partial = 0.5});
  return model;
}

constexpr auto kPersimmonFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("intermediate_size"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read("hidden_act"),
    read("max_position_embeddings"),
    read("layer_norm_eps"),
    read_or_null("tie_word_embeddings"),
    read("qk_layernorm"),
    read("rope_theta"),
    read_or_null("rope_scaling"),
    read_or_null("rope_parameters"),
    read_or_null("partial_rotary_factor"),
    read_or_null("original_max_position_embeddings"),
});

constexpr auto kPersimmonNames = std::to_array<std::string_view>({"PersimmonForCausalLM"});
constexpr auto kPersimmonTypes = std::to_array<std::string_view>({"persimmon"});

constexpr auto kPersimmonTensors =
    join_tensors(kLlamaEmbeddingTensors,
                 kOneNormTensors,
                 kAttentionNormBiasTensors,
                 kMlpNormBiasTensors,
                 std::to_array<TensorSpec>({
                     {Role::kFinalNorm, "model.final_layernorm.weight", Dim::kOne, Dim::kHidden},
                     {Role::kFinalNormBias, "model.final_layernorm.bias", Dim::kOne, Dim::kHidden},
                     {Role::kMlpNorm, "model.layers.{layer}.post_attention_layernorm.weight",
                      Dim::kOne, Dim::kHidden},
                     {Role::kQkv, "model.layers.{layer}.self_attn.query_key_value.weight",
                      Dim::kQkvByKvHead, Dim::kHidden, Split::kRows},
                     {Role::kQkvBias, "model.layers.{layer}.self_attn.query_key_value.bias",
                      Dim::kOne, Dim::kQkvByKvHead, Split::kRows},
                     {Role::kQNorm, "model.layers.{layer}.self_attn.q_layernorm.weight", Dim::kOne,
                      Dim::kHeadDim, Split::kNone, has_qk_norm},
                     {Role::kQNormBias, "model.layers.{layer}.self_attn.q_layernorm.bias",
                      Dim::kOne, Dim::kHeadDim, Split::kNone, has_qk_norm},
                     {Role::kKNorm, "model.layers.{layer}.self_attn.k_layernorm.weight", Dim::kOne,
                      Dim::kHeadDim, Split::kNone, has_qk_norm},
                     {Role::kKNormBias, "model.layers.{layer}.self_attn.k_layernorm.bias",
                      Dim::kOne, Dim::kHeadDim, Split::kNone, has_qk_norm},
                     {Role::kO, "model.layers.{layer}.self_attn.dense.weight", Dim::kHidden,
                      Dim::kQ, Split::kColumns},
                     {Role::kOBias, "model.layers.{layer}.self_attn.dense.bias", Dim::kOne,
                      Dim::kHidden, Split::kColumns},
                     {Role::kUp, "model.layers.{layer}.mlp.dense_h_to_4h.weight",
                      Dim::kIntermediate, Dim::kHidden, Split::kRows},
                     {Role::kUpBias, "model.layers.{layer}.mlp.dense_h_to_4h.bias", Dim::kOne,
                      Dim::kIntermediate, Split::kRows},
                     {Role::kDown, "model.layers.{layer}.mlp.dense_4h_to_h.weight", Dim::kHidden,
                      Dim::kIntermediate, Split::kColumns},
                     {Role::kDownBias, "model.layers.{layer}.mlp.dense_4h_to_h.bias", Dim::kOne,
                      Dim::kHidden, Split::kColumns},
                 }));

}  // namespace

extern const Architecture kPersimmon;
constexpr Architecture kPersimmon = {
    .names = kPersimmonNames,
    .model_types = kPersimmonTypes,
    .prefix = "model.",
    .read_config = read_persimmon,
    .fields = kPersimmonFields,
    .tensors = kPersimmonTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
