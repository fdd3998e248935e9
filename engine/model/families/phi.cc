// Phi 1, 1.5 and 2: attention and an MLP without a gate, side by side behind one LayerNorm, biases
// everywhere, a part of the head rotated.
// Source: models/phi in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_phi(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.norm_eps = "layer_norm_eps",
                                                   .default_vocab_size = 51200,
                                                   .default_hidden_size = 2048,
                                                   .default_num_layers = 24,
                                                   .default_intermediate = 8192,
                                                   .default_norm_eps = 1e-5,
                                                   .default_activation = "gelu_new"});
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.attention_bias = true;
  model.parallel_branches = true;
  model.shares_branch_norm = true;
  model.has_qk_norm = config.boolean_or("qk_layernorm", false);
  model.qk_norm_kind = NormKind::kLayer;
  read_rope(config, model, {.takes_partial = true, .default_partial = 0.5});
  return model;
}

constexpr auto kPhiFields =
    join_fields(std::to_array<KnownField>({
                    harmless_if("rms_norm_eps", "[]", "the norms are not of that kind"),
                    read("layer_norm_eps"),
                    read("qk_layernorm"),
                }),
                kDecoderFields);

constexpr auto kPhiNames = std::to_array<std::string_view>({"PhiForCausalLM"});
constexpr auto kPhiTypes = std::to_array<std::string_view>({"phi"});

constexpr auto kPhiTensors = join_tensors(
    std::to_array<TensorSpec>({
        {Role::kTokenEmbedding, "model.embed_tokens.weight", Dim::kVocab, Dim::kHidden},
        {Role::kFinalNorm, "model.final_layernorm.weight", Dim::kOne, Dim::kHidden},
        {Role::kFinalNormBias, "model.final_layernorm.bias", Dim::kOne, Dim::kHidden},
        {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
        {Role::kLmHeadBias, "lm_head.bias", Dim::kOne, Dim::kVocab},
        {Role::kAttentionNorm, "model.layers.{layer}.input_layernorm.weight", Dim::kOne,
         Dim::kHidden},
    }),
    kAttentionNormBiasTensors,
    kLlamaQkvTensors,
    kLlamaQkvBiasTensors,
    std::to_array<TensorSpec>({
        {Role::kQNorm, "model.layers.{layer}.self_attn.q_layernorm.weight", Dim::kOne,
         Dim::kHeadDim, Split::kNone, has_qk_norm},
        {Role::kQNormBias, "model.layers.{layer}.self_attn.q_layernorm.bias", Dim::kOne,
         Dim::kHeadDim, Split::kNone, has_qk_norm},
        {Role::kKNorm, "model.layers.{layer}.self_attn.k_layernorm.weight", Dim::kOne,
         Dim::kHeadDim, Split::kNone, has_qk_norm},
        {Role::kKNormBias, "model.layers.{layer}.self_attn.k_layernorm.bias", Dim::kOne,
         Dim::kHeadDim, Split::kNone, has_qk_norm},
        {Role::kO, "model.layers.{layer}.self_attn.dense.weight", Dim::kHidden, Dim::kQ,
         Split::kColumns},
        {Role::kOBias, "model.layers.{layer}.self_attn.dense.bias", Dim::kOne, Dim::kHidden,
         Split::kColumns},
        {Role::kUp, "model.layers.{layer}.mlp.fc1.weight", Dim::kIntermediate, Dim::kHidden,
         Split::kRows},
        {Role::kUpBias, "model.layers.{layer}.mlp.fc1.bias", Dim::kOne, Dim::kIntermediate,
         Split::kRows},
        {Role::kDown, "model.layers.{layer}.mlp.fc2.weight", Dim::kHidden, Dim::kIntermediate,
         Split::kColumns},
        {Role::kDownBias, "model.layers.{layer}.mlp.fc2.bias", Dim::kOne, Dim::kHidden,
         Split::kColumns},
    }));

}  // namespace

extern const Architecture kPhi;
constexpr Architecture kPhi = {
    .names = kPhiNames,
    .model_types = kPhiTypes,
    .prefix = "model.",
    .read_config = read_phi,
    .fields = kPhiFields,
    .tensors = kPhiTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
