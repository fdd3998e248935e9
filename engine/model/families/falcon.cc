// Falcon: branches in parallel behind one norm (7B), behind a norm each (40B), or one after the
// other (RW), rotary embeddings or ALiBi; one matrix that keeps what belongs to a KV head together.
// Its first code calls class and fields otherwise.
// Source: models/falcon in `transformers`.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/alibi.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

[[noreturn]] void refuse(const JsonReader& config, std::string_view key, const std::string& what) {
  throw Error(Code::kUnsupported, fmt::format("{}: {}", config.path_of(key), what));
}

void read_kv_heads(const JsonReader& config, bool is_new, ModelConfig& model) {
  const bool multi_query = config.boolean_or("multi_query", true);
  if (is_new) return;
  if (!multi_query && model.num_kv_heads != model.num_heads) {
    refuse(config, "num_kv_heads",
           fmt::format("{} of {} heads needs new_decoder_architecture", model.num_kv_heads,
                       model.num_heads));
  }
  if (multi_query) model.num_kv_heads = 1;
}

void read_branches(const JsonReader& config, bool is_new, ModelConfig& model) {
  static constexpr std::string_view kNorms = "num_ln_in_parallel_attn";
  model.parallel_branches = config.boolean_or("parallel_attn", true);
  const int64_t num_norms = config.integer_or(kNorms, is_new ? 2 : 1);
  if (num_norms != 1 && num_norms != 2) {
    refuse(config, kNorms, fmt::format("expected 1 or 2, got {}", num_norms));
  }
  if (is_new && !model.parallel_branches) {
    refuse(config, "parallel_attn", "false, but new_decoder_architecture has parallel branches");
  }
  if (!is_new && num_norms == 2) refuse(config, kNorms, "2 needs new_decoder_architecture");
  model.shares_branch_norm = model.parallel_branches && num_norms == 1;
}

void read_positions(const JsonReader& config, ModelConfig& model) {
  if (!config.boolean_or("alibi", false)) return read_rope(config, model);
  // Added before the scores are scaled.
  model.alibi_slopes = alibi_slopes_of_lower_power(model.num_heads);
  for (float& slope : model.alibi_slopes) slope *= model.attention_scale;
}

ModelConfig read_falcon(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.num_kv_heads = "num_kv_heads",
                                                   .head_dim = "",
                                                   .intermediate_size = "ffn_hidden_size",
                                                   .norm_eps = "layer_norm_epsilon",
                                                   .activation = "activation",
                                                   .default_vocab_size = 65024,
                                                   .default_hidden_size = 4544,
                                                   .default_num_heads = 71,
                                                   .default_intermediate = 0,
                                                   .default_norm_eps = 1e-5,
                                                   .default_activation = "gelu",
                                                   .default_tied = true,
                                                   .default_bos = 11,
                                                   .default_eos = 11});
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.attention_bias = config.boolean_or("bias", false);
  model.mlp_bias = model.attention_bias;
  const bool is_new = config.boolean_or("new_decoder_architecture", false);
  read_kv_heads(config, is_new, model);
  read_branches(config, is_new, model);
  read_positions(config, model);
  return model;
}

// As Falcon was first published: the type of the 40B alone says that its block is the new one.
ModelConfig read_refined_web(const JsonReader& given) {
  Json json = given.json();
  if (given.string_or("model_type", "") == "RefinedWeb") json["new_decoder_architecture"] = true;
  return read_falcon(JsonReader(json, ""));
}

constexpr auto kFalconFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read_or_null("ffn_hidden_size"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read_or_null("num_kv_heads"),
    read("activation"),
    read("max_position_embeddings"),
    read("layer_norm_epsilon"),
    read_or_null("tie_word_embeddings"),
    read("rope_theta"),
    read_or_null("rope_scaling"),
    read_or_null("rope_parameters"),
    read_or_null("original_max_position_embeddings"),
    read("bias"),
    read("alibi"),
    read("multi_query"),
    read("parallel_attn"),
    read("new_decoder_architecture"),
    read_or_null("num_ln_in_parallel_attn"),
    harmless_if("apply_residual_connection_post_layernorm",
                "[false]",
                "the stream goes on from what a norm reads"),
});

constexpr auto kFalconAliases = std::to_array<FieldAlias>({
    {"n_embed", "hidden_size"},
    {"n_layer", "num_hidden_layers"},
    {"n_head", "num_attention_heads"},
    {"n_head_kv", "num_kv_heads"},
});

constexpr auto kFalconNames = std::to_array<std::string_view>({"FalconForCausalLM"});
constexpr auto kFalconTypes = std::to_array<std::string_view>({"falcon"});
constexpr auto kRefinedWebNames = std::to_array<std::string_view>({"RWForCausalLM"});
constexpr auto kRefinedWebTypes =
    std::to_array<std::string_view>({"RefinedWebModel", "RefinedWeb"});

constexpr bool has_norm_each(const ModelConfig& config, int32_t /*layer*/) {
  return config.parallel_branches && !config.shares_branch_norm;
}
constexpr bool has_input_norm(const ModelConfig& config, int32_t layer) {
  return !has_norm_each(config, layer);
}
constexpr bool is_sequential(const ModelConfig& config, int32_t /*layer*/) {
  return !config.parallel_branches;
}

constexpr auto kFalconTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "transformer.word_embeddings.weight", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "transformer.ln_f.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "transformer.ln_f.bias", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "transformer.h.{layer}.ln_attn.weight", Dim::kOne, Dim::kHidden,
     Split::kNone, has_norm_each},
    {Role::kAttentionNormBias, "transformer.h.{layer}.ln_attn.bias", Dim::kOne, Dim::kHidden,
     Split::kNone, has_norm_each},
    {Role::kMlpNorm, "transformer.h.{layer}.ln_mlp.weight", Dim::kOne, Dim::kHidden, Split::kNone,
     has_norm_each},
    {Role::kMlpNormBias, "transformer.h.{layer}.ln_mlp.bias", Dim::kOne, Dim::kHidden, Split::kNone,
     has_norm_each},
    {Role::kAttentionNorm, "transformer.h.{layer}.input_layernorm.weight", Dim::kOne, Dim::kHidden,
     Split::kNone, has_input_norm},
    {Role::kAttentionNormBias, "transformer.h.{layer}.input_layernorm.bias", Dim::kOne,
     Dim::kHidden, Split::kNone, has_input_norm},
    {Role::kMlpNorm, "transformer.h.{layer}.post_attention_layernorm.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, is_sequential},
    {Role::kMlpNormBias, "transformer.h.{layer}.post_attention_layernorm.bias", Dim::kOne,
     Dim::kHidden, Split::kNone, is_sequential},
    {Role::kQkv, "transformer.h.{layer}.self_attention.query_key_value.weight", Dim::kQkvByKvHead,
     Dim::kHidden, Split::kRows},
    {Role::kQkvBias, "transformer.h.{layer}.self_attention.query_key_value.bias", Dim::kOne,
     Dim::kQkvByKvHead, Split::kRows, has_attention_bias},
    {Role::kO, "transformer.h.{layer}.self_attention.dense.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kOBias, "transformer.h.{layer}.self_attention.dense.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, has_attention_bias},
    {Role::kUp, "transformer.h.{layer}.mlp.dense_h_to_4h.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kUpBias, "transformer.h.{layer}.mlp.dense_h_to_4h.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows, has_mlp_bias},
    {Role::kDown, "transformer.h.{layer}.mlp.dense_4h_to_h.weight", Dim::kHidden,
     Dim::kIntermediate, Split::kColumns},
    {Role::kDownBias, "transformer.h.{layer}.mlp.dense_4h_to_h.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, has_mlp_bias},
});

}  // namespace

extern const Architecture kFalcon, kRefinedWeb;
constexpr Architecture kRefinedWeb = {
    .names = kRefinedWebNames,
    .model_types = kRefinedWebTypes,
    .prefix = "transformer.",
    .read_config = read_refined_web,
    .fields = kFalconFields,
    .aliases = kFalconAliases,
    .tensors = kFalconTensors,
    .ignored = kRotaryTables,
};
constexpr Architecture kFalcon = {
    .names = kFalconNames,
    .model_types = kFalconTypes,
    .prefix = "transformer.",
    .read_config = read_falcon,
    .fields = kFalconFields,
    .aliases = kFalconAliases,
    .tensors = kFalconTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
