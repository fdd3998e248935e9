// StableLM: Llama's block with LayerNorm, a part of the head rotated, and if asked for branches in
// parallel behind one norm and a norm of each head of q and k.
// Source: models/stablelm in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_stablelm(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.norm_eps = "layer_norm_eps",
                                                   .default_vocab_size = 50304,
                                                   .default_hidden_size = 2560,
                                                   .default_num_kv_heads = 32,
                                                   .default_intermediate = 6912,
                                                   .default_max_positions = 4096,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = 0,
                                                   .default_eos = 0});
  model.norm_kind = NormKind::kLayer;
  model.attention_bias = config.boolean_or("use_qkv_bias", false);  // of q, k and v
  model.parallel_branches = config.boolean_or("use_parallel_residual", false);
  model.shares_branch_norm = model.parallel_branches;
  model.has_qk_norm = config.boolean_or("qk_layernorm", false);
  model.qk_norm_kind = NormKind::kLayer;
  read_rope(config, model, {.takes_partial = true, .default_partial = 0.25});
  return model;
}

constexpr auto kStablelmFields =
    join_fields(std::to_array<KnownField>({
                    harmless_if("rms_norm_eps", "[]", "the norms are not of that kind"),
                    read("layer_norm_eps"),
                    harmless_if("rotary_scaling_factor", "[1.0, 1]", "positions are as they are"),
                    read("use_qkv_bias"),
                    read("use_parallel_residual"),
                    read("qk_layernorm"),
                }),
                kDecoderFields);

constexpr auto kStablelmNames = std::to_array<std::string_view>(
    {"StableLmForCausalLM", "StableLMEpochForCausalLM"});  // the second: as it was first published
constexpr auto kStablelmTypes = std::to_array<std::string_view>({"stablelm", "stablelm_epoch"});

constexpr auto kStablelmAliases = std::to_array<FieldAlias>({
    {"norm_eps", "layer_norm_eps"},
    {"num_heads", "num_attention_heads"},
    {"rope_pct", "partial_rotary_factor"},
});

constexpr auto kStablelmTensors = join_tensors(
    kLlamaOuterTensors,
    kFinalNormBiasTensors,
    kLlamaNormTensors,
    kAttentionNormBiasTensors,
    kMlpNormBiasTensors,
    kLlamaAttentionTensors,
    kLlamaQkvBiasTensors,
    std::to_array<TensorSpec>({
        {Role::kQNorm, "model.layers.{layer}.self_attn.q_layernorm.norms.{head}.weight", Dim::kOne,
         Dim::kQ, Split::kRows, has_qk_norm},
        {Role::kKNorm, "model.layers.{layer}.self_attn.k_layernorm.norms.{head}.weight", Dim::kOne,
         Dim::kKv, Split::kRows, has_qk_norm},
    }),
    kLlamaMlpTensors);

}  // namespace

extern const Architecture kStablelm;
constexpr Architecture kStablelm = {
    .names = kStablelmNames,
    .model_types = kStablelmTypes,
    .prefix = "model.",
    .read_config = read_stablelm,
    .fields = kStablelmFields,
    .aliases = kStablelmAliases,
    .tensors = kStablelmTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
