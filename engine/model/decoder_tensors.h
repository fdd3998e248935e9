// Tables of tensors that many families have under the same names: those of Llama's block, in parts,
// for a family's table to join with its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "engine/model/architecture.h"

namespace tgi {

template <size_t... kSizes>
constexpr auto join_tensors(const std::array<TensorSpec, kSizes>&... parts) {
  std::array<TensorSpec, (kSizes + ...)> out{};
  size_t at = 0;
  ((std::ranges::copy(parts, out.begin() + static_cast<std::ptrdiff_t>(at)), at += kSizes), ...);
  return out;
}

constexpr bool has_own_head(const ModelConfig& config, int32_t /*layer*/) {
  return !config.tied_embeddings;
}
constexpr bool has_attention_bias(const ModelConfig& config, int32_t /*layer*/) {
  return config.attention_bias;
}
constexpr bool has_attention_output_bias(const ModelConfig& config, int32_t /*layer*/) {
  return config.attention_output_bias;
}
constexpr bool has_qk_norm(const ModelConfig& config, int32_t /*layer*/) {
  return config.has_qk_norm;
}
// Of models whose parallel branches may read what one norm gives.
constexpr bool has_mlp_norm(const ModelConfig& config, int32_t /*layer*/) {
  return !config.shares_branch_norm;
}
constexpr bool has_experts(const ModelConfig& config, int32_t layer) {
  return has_expert_part(config.layers[static_cast<size_t>(layer)].mlp);
}
constexpr bool has_dense_mlp(const ModelConfig& config, int32_t layer) {
  return has_dense_part(config.layers[static_cast<size_t>(layer)].mlp);
}
constexpr bool has_mlp_bias(const ModelConfig& config, int32_t /*layer*/) {
  return config.mlp_bias;
}

inline constexpr auto kLlamaEmbeddingTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "model.embed_tokens.weight", Dim::kVocab, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
});

// Embedding, last norm and head.
inline constexpr auto kLlamaOuterTensors =
    join_tensors(kLlamaEmbeddingTensors,
                 std::to_array<TensorSpec>({
                     {Role::kFinalNorm, "model.norm.weight", Dim::kOne, Dim::kHidden},
                 }));

// A norm before each branch, or one for both.
inline constexpr auto kLlamaNormTensors = std::to_array<TensorSpec>({
    {Role::kAttentionNorm, "model.layers.{layer}.input_layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNorm, "model.layers.{layer}.post_attention_layernorm.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, has_mlp_norm},
});

// Biases of norms with a mean, where they have the names of Llama's.
inline constexpr auto kFinalNormBiasTensors = std::to_array<TensorSpec>({
    {Role::kFinalNormBias, "model.norm.bias", Dim::kOne, Dim::kHidden},
});
inline constexpr auto kAttentionNormBiasTensors = std::to_array<TensorSpec>({
    {Role::kAttentionNormBias, "model.layers.{layer}.input_layernorm.bias", Dim::kOne,
     Dim::kHidden},
});
inline constexpr auto kMlpNormBiasTensors = std::to_array<TensorSpec>({
    {Role::kMlpNormBias, "model.layers.{layer}.post_attention_layernorm.bias", Dim::kOne,
     Dim::kHidden, Split::kNone, has_mlp_norm},
});

// Of all three.
inline constexpr auto kLlamaNormBiasTensors =
    join_tensors(kFinalNormBiasTensors, kAttentionNormBiasTensors, kMlpNormBiasTensors);

// A norm after each branch too, as Gemma 2 calls them.
inline constexpr auto kFourNormTensors = std::to_array<TensorSpec>({
    {Role::kAttentionNorm, "model.layers.{layer}.input_layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kAttentionPostNorm, "model.layers.{layer}.post_attention_layernorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNorm, "model.layers.{layer}.pre_feedforward_layernorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpPostNorm, "model.layers.{layer}.post_feedforward_layernorm.weight", Dim::kOne,
     Dim::kHidden},
});

// A norm after each branch only.
inline constexpr auto kPostNormTensors = std::to_array<TensorSpec>({
    {Role::kAttentionPostNorm, "model.layers.{layer}.post_attention_layernorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpPostNorm, "model.layers.{layer}.post_feedforward_layernorm.weight", Dim::kOne,
     Dim::kHidden},
});

// One norm, of what both branches read.
inline constexpr auto kOneNormTensors = std::to_array<TensorSpec>({
    {Role::kAttentionNorm, "model.layers.{layer}.input_layernorm.weight", Dim::kOne, Dim::kHidden},
});

inline constexpr auto kLlamaQkvTensors = std::to_array<TensorSpec>({
    {Role::kQ, "model.layers.{layer}.self_attn.q_proj.weight", Dim::kQ, Dim::kHidden, Split::kRows},
    {Role::kK, "model.layers.{layer}.self_attn.k_proj.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kV, "model.layers.{layer}.self_attn.v_proj.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
});
inline constexpr auto kLlamaOTensors = std::to_array<TensorSpec>({
    {Role::kO, "model.layers.{layer}.self_attn.o_proj.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
});
inline constexpr auto kLlamaAttentionTensors = join_tensors(kLlamaQkvTensors, kLlamaOTensors);

constexpr bool has_short_queries(const ModelConfig& config, int32_t /*layer*/) {
  return config.latent.query_rank > 0;
}
constexpr bool has_no_short_queries(const ModelConfig& config, int32_t /*layer*/) {
  return config.latent.query_rank == 0;
}
constexpr bool has_own_latents(const ModelConfig& config, int32_t layer) {
  return config.layers[static_cast<size_t>(layer)].has_own_kv();
}
constexpr bool has_latent_bias(const ModelConfig& config, int32_t layer) {
  return config.attention_bias && has_own_latents(config, layer);
}
constexpr bool has_short_query_bias(const ModelConfig& config, int32_t layer) {
  return config.attention_bias && has_short_queries(config, layer);
}

// Latent attention, as DeepSeek names it, with biases where attention_bias says so.
inline constexpr auto kLatentQTensors = std::to_array<TensorSpec>({
    {Role::kQ, "model.layers.{layer}.self_attn.q_proj.weight", Dim::kQ, Dim::kHidden, Split::kRows,
     has_no_short_queries},
    {Role::kQ, "model.layers.{layer}.self_attn.q_b_proj.weight", Dim::kQ, Dim::kQueryRank,
     Split::kRows, has_short_queries},
});
inline constexpr auto kLatentRowTensors = std::to_array<TensorSpec>({
    {Role::kQueryDown, "model.layers.{layer}.self_attn.q_a_proj.weight", Dim::kQueryRank,
     Dim::kHidden, Split::kNone, has_short_queries},
    {Role::kQueryDownBias, "model.layers.{layer}.self_attn.q_a_proj.bias", Dim::kOne,
     Dim::kQueryRank, Split::kNone, has_short_query_bias},
    {Role::kQueryDownNorm, "model.layers.{layer}.self_attn.q_a_layernorm.weight", Dim::kOne,
     Dim::kQueryRank, Split::kNone, has_short_queries},
    {Role::kLatentDown, "model.layers.{layer}.self_attn.kv_a_proj_with_mqa.weight", Dim::kLatentKey,
     Dim::kHidden, Split::kNone, has_own_latents},
    {Role::kLatentDownBias, "model.layers.{layer}.self_attn.kv_a_proj_with_mqa.bias", Dim::kOne,
     Dim::kLatentKey, Split::kNone, has_latent_bias},
    {Role::kLatentNorm, "model.layers.{layer}.self_attn.kv_a_layernorm.weight", Dim::kOne,
     Dim::kLatent, Split::kNone, has_own_latents},
    {Role::kLatentUp, "model.layers.{layer}.self_attn.kv_b_proj.weight", Dim::kLatentUp,
     Dim::kLatent, Split::kRows},
    {Role::kO, "model.layers.{layer}.self_attn.o_proj.weight", Dim::kHidden, Dim::kHeadValues,
     Split::kColumns},
    {Role::kOBias, "model.layers.{layer}.self_attn.o_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, has_attention_bias},
});
inline constexpr auto kLatentAttentionTensors = join_tensors(kLatentQTensors, kLatentRowTensors);

constexpr bool chooses_tokens(const ModelConfig& config, int32_t layer) {
  return config.layers[static_cast<size_t>(layer)].seen == SeenTokens::kOwnChoice;
}

// DeepSeek's indexer, in the layers that choose; what its queries are made of is in the second.
inline constexpr auto kIndexerTensors = std::to_array<TensorSpec>({
    {Role::kIndexerKey, "model.layers.{layer}.self_attn.indexer.wk.weight", Dim::kIndexerHeadDim,
     Dim::kHidden, Split::kNone, chooses_tokens},
    {Role::kIndexerKeyNorm, "model.layers.{layer}.self_attn.indexer.k_norm.weight", Dim::kOne,
     Dim::kIndexerHeadDim, Split::kNone, chooses_tokens},
    {Role::kIndexerKeyNormBias, "model.layers.{layer}.self_attn.indexer.k_norm.bias", Dim::kOne,
     Dim::kIndexerHeadDim, Split::kNone, chooses_tokens},
    {Role::kIndexerWeights, "model.layers.{layer}.self_attn.indexer.weights_proj.weight",
     Dim::kIndexerHeads, Dim::kHidden, Split::kNone, chooses_tokens},
});

inline constexpr auto kSparseAttentionTensors =
    join_tensors(kIndexerTensors,
                 std::to_array<TensorSpec>({
                     {Role::kIndexerQuery, "model.layers.{layer}.self_attn.indexer.wq_b.weight",
                      Dim::kIndexerQueries, Dim::kQueryRank, Split::kNone, chooses_tokens},
                 }));

// Biases of q, k and v, where attention_bias says so.
inline constexpr auto kLlamaQkvBiasTensors = std::to_array<TensorSpec>({
    {Role::kQBias, "model.layers.{layer}.self_attn.q_proj.bias", Dim::kOne, Dim::kQ, Split::kRows,
     has_attention_bias},
    {Role::kKBias, "model.layers.{layer}.self_attn.k_proj.bias", Dim::kOne, Dim::kKv, Split::kRows,
     has_attention_bias},
    {Role::kVBias, "model.layers.{layer}.self_attn.v_proj.bias", Dim::kOne, Dim::kKv, Split::kRows,
     has_attention_bias},
});
inline constexpr auto kLlamaOBiasTensors = std::to_array<TensorSpec>({
    {Role::kOBias, "model.layers.{layer}.self_attn.o_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, has_attention_bias},
});

// A norm of each head of q and k.
inline constexpr auto kQkNormTensors = std::to_array<TensorSpec>({
    {Role::kQNorm, "model.layers.{layer}.self_attn.q_norm.weight", Dim::kOne, Dim::kHeadDim},
    {Role::kKNorm, "model.layers.{layer}.self_attn.k_norm.weight", Dim::kOne, Dim::kHeadDim},
});

// The same, where the config says so.
inline constexpr auto kOptionalQkNormTensors = std::to_array<TensorSpec>({
    {Role::kQNorm, "model.layers.{layer}.self_attn.q_norm.weight", Dim::kOne, Dim::kHeadDim,
     Split::kNone, has_qk_norm},
    {Role::kKNorm, "model.layers.{layer}.self_attn.k_norm.weight", Dim::kOne, Dim::kHeadDim,
     Split::kNone, has_qk_norm},
});

// One norm over all heads of q, and one of k.
inline constexpr auto kQkRowNormTensors = std::to_array<TensorSpec>({
    {Role::kQNorm, "model.layers.{layer}.self_attn.q_norm.weight", Dim::kOne, Dim::kQ},
    {Role::kKNorm, "model.layers.{layer}.self_attn.k_norm.weight", Dim::kOne, Dim::kKv},
});

// In the layers without experts: in most families, all.
inline constexpr auto kLlamaMlpTensors = std::to_array<TensorSpec>({
    {Role::kGate, "model.layers.{layer}.mlp.gate_proj.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows, has_dense_mlp},
    {Role::kUp, "model.layers.{layer}.mlp.up_proj.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows, has_dense_mlp},
    {Role::kDown, "model.layers.{layer}.mlp.down_proj.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns, has_dense_mlp},
});

// Without a gate.
inline constexpr auto kUngatedMlpTensors = std::to_array<TensorSpec>({
    {Role::kUp, "model.layers.{layer}.mlp.up_proj.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kUpBias, "model.layers.{layer}.mlp.up_proj.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows, has_mlp_bias},
    {Role::kDown, "model.layers.{layer}.mlp.down_proj.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
    {Role::kDownBias, "model.layers.{layer}.mlp.down_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, has_mlp_bias},
});

// Gate and up in one matrix.
inline constexpr auto kFusedMlpTensors = std::to_array<TensorSpec>({
    {Role::kGateUp, "model.layers.{layer}.mlp.gate_up_proj.weight", Dim::kGateUp, Dim::kHidden,
     Split::kRows},
    {Role::kDown, "model.layers.{layer}.mlp.down_proj.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
});

// Biases of gate, up and down, where mlp_bias says so.
inline constexpr auto kLlamaMlpBiasTensors = std::to_array<TensorSpec>({
    {Role::kGateBias, "model.layers.{layer}.mlp.gate_proj.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows, has_mlp_bias},
    {Role::kUpBias, "model.layers.{layer}.mlp.up_proj.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows, has_mlp_bias},
    {Role::kDownBias, "model.layers.{layer}.mlp.down_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, has_mlp_bias},
});

constexpr bool has_shared_expert(const ModelConfig& config, int32_t layer) {
  return has_experts(config, layer) && config.experts.shared_intermediate_size > 0;
}
constexpr bool has_experts_by_token(const ModelConfig& config, int32_t layer) {
  return has_experts(config, layer) && config.layers[static_cast<size_t>(layer)].experts_by_token;
}
// Where experts are those of the token there is no choice.
constexpr bool has_choice_bias(const ModelConfig& config, int32_t layer) {
  return has_experts(config, layer) && config.experts.has_choice_bias &&
         !has_experts_by_token(config, layer);
}
constexpr bool has_shared_gate(const ModelConfig& config, int32_t layer) {
  return has_shared_expert(config, layer) && config.experts.has_shared_gate;
}

// Experts as Mixtral names them.
inline constexpr auto kMixtralExpertTensors = std::to_array<TensorSpec>({
    {Role::kRouter, "model.layers.{layer}.block_sparse_moe.gate.weight", Dim::kExperts,
     Dim::kHidden, Split::kNone, has_experts},
    {Role::kExpertGate, "model.layers.{layer}.block_sparse_moe.experts.{expert}.w1.weight",
     Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
    {Role::kExpertUp, "model.layers.{layer}.block_sparse_moe.experts.{expert}.w3.weight",
     Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
    {Role::kExpertDown, "model.layers.{layer}.block_sparse_moe.experts.{expert}.w2.weight",
     Dim::kHidden, Dim::kExpertIntermediate, Split::kColumns, has_experts},
});
inline constexpr auto kMixtralSharedExpertsTensors = std::to_array<TensorSpec>({
    {Role::kSharedGate, "model.layers.{layer}.block_sparse_moe.shared_experts.gate_proj.weight",
     Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_shared_expert},
    {Role::kSharedUp, "model.layers.{layer}.block_sparse_moe.shared_experts.up_proj.weight",
     Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_shared_expert},
    {Role::kSharedDown, "model.layers.{layer}.block_sparse_moe.shared_experts.down_proj.weight",
     Dim::kHidden, Dim::kSharedIntermediate, Split::kColumns, has_shared_expert},
});

// Experts as Qwen and DeepSeek name them, in the layers that have them.
inline constexpr auto kExpertTensors = std::to_array<TensorSpec>({
    {Role::kRouter, "model.layers.{layer}.mlp.gate.weight", Dim::kExperts, Dim::kHidden,
     Split::kNone, has_experts},
    {Role::kExpertGate, "model.layers.{layer}.mlp.experts.{expert}.gate_proj.weight",
     Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
    {Role::kExpertUp, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight",
     Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
    {Role::kExpertDown, "model.layers.{layer}.mlp.experts.{expert}.down_proj.weight", Dim::kHidden,
     Dim::kExpertIntermediate, Split::kColumns, has_experts},
});

// The same, each kind stored one behind the other.
inline constexpr auto kStackedExpertTensors = std::to_array<TensorSpec>({
    {Role::kRouter, "model.layers.{layer}.mlp.gate.weight", Dim::kExperts, Dim::kHidden,
     Split::kNone, has_experts},
    {.role = Role::kExpertGateUp,
     .name = "model.layers.{layer}.mlp.experts.gate_up_proj",
     .rows = Dim::kExpertGateUp,
     .cols = Dim::kHidden,
     .split = Split::kRows,
     .only_if = has_experts,
     .stacked = true},
    {.role = Role::kExpertDown,
     .name = "model.layers.{layer}.mlp.experts.down_proj",
     .rows = Dim::kHidden,
     .cols = Dim::kExpertIntermediate,
     .split = Split::kColumns,
     .only_if = has_experts,
     .stacked = true},
});

inline constexpr auto kQwenSharedExpertTensors = std::to_array<TensorSpec>({
    {Role::kSharedGate, "model.layers.{layer}.mlp.shared_expert.gate_proj.weight",
     Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_shared_expert},
    {Role::kSharedUp, "model.layers.{layer}.mlp.shared_expert.up_proj.weight",
     Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_shared_expert},
    {Role::kSharedDown, "model.layers.{layer}.mlp.shared_expert.down_proj.weight", Dim::kHidden,
     Dim::kSharedIntermediate, Split::kColumns, has_shared_expert},
    {Role::kSharedOutputGate, "model.layers.{layer}.mlp.shared_expert_gate.weight", Dim::kOneRow,
     Dim::kHidden, Split::kNone, has_shared_gate},
});

// DeepSeek's, which other families have taken over, beside kExpertTensors.
inline constexpr auto kSharedExpertsTensors = std::to_array<TensorSpec>({
    {Role::kSharedGate, "model.layers.{layer}.mlp.shared_experts.gate_proj.weight",
     Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_shared_expert},
    {Role::kSharedUp, "model.layers.{layer}.mlp.shared_experts.up_proj.weight",
     Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_shared_expert},
    {Role::kSharedDown, "model.layers.{layer}.mlp.shared_experts.down_proj.weight", Dim::kHidden,
     Dim::kSharedIntermediate, Split::kColumns, has_shared_expert},
});
inline constexpr auto kDeepSeekExpertTensors =
    join_tensors(kSharedExpertsTensors,
                 std::to_array<TensorSpec>({
                     {Role::kChoiceBias, "model.layers.{layer}.mlp.gate.e_score_correction_bias",
                      Dim::kOne, Dim::kExperts, Split::kNone, has_choice_bias},
                 }));

// In layers whose experts are those of the token, beside them.
inline constexpr auto kExpertsByTokenTensors = std::to_array<TensorSpec>({
    {.role = Role::kExpertsByToken,
     .name = "model.layers.{layer}.mlp.gate.tid2eid",
     .rows = Dim::kVocab,
     .cols = Dim::kExpertsOfToken,
     .only_if = has_experts_by_token,
     .holds_indices = true},
});

// Old checkpoints carry the rotary tables.
inline constexpr auto kRotaryTables = std::to_array<std::string_view>({".rotary_emb.inv_freq"});

}  // namespace tgi
