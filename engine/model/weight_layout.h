// Which tensors become which member of ModelWeights: the plan, the check and the load all walk this
// one table, so that what is planned is what is loaded.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/model_weights.h"

namespace tgi {

// A matrix stacked by rows from those of its parts that the model has, each with its bias.
struct LinearPart {
  Role weight;
  Role bias;  // kCount: can't have one
};

struct LayerLinear {
  Linear LayerWeights::*target;
  std::span<const LinearPart> parts;
};

struct LayerVector {
  DeviceVector LayerWeights::*target;
  Role role;
};

inline constexpr std::array<LinearPart, 5> kQkvParts = {{
    {Role::kQ, Role::kQBias},
    {Role::kK, Role::kKBias},
    {Role::kV, Role::kVBias},
    {Role::kQkv, Role::kQkvBias},
    {Role::kOutputGate, Role::kOutputGateBias},
}};
inline constexpr std::array<LinearPart, 3> kLatentDownParts = {{
    {Role::kQueryDown, Role::kQueryDownBias},
    {Role::kLatentDown, Role::kLatentDownBias},
    {Role::kLatentGate, Role::kCount},
}};
inline constexpr std::array<LinearPart, 1> kIndexerQueryParts = {
    {{Role::kIndexerQuery, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kIndexerKeyParts = {{{Role::kIndexerKey, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kIndexerWeightsParts = {
    {{Role::kIndexerWeights, Role::kCount}}};
inline constexpr std::array<LinearPart, 2> kEntryRowsParts = {{
    {Role::kEntryValues, Role::kCount},
    {Role::kEntryGates, Role::kCount},
}};
inline constexpr std::array<LinearPart, 2> kIndexerEntryRowsParts = {{
    {Role::kIndexerEntryValues, Role::kCount},
    {Role::kIndexerEntryGates, Role::kCount},
}};
inline constexpr std::array<LinearPart, 1> kValueGateParts = {{{Role::kValueGate, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kAttentionNormGateInParts = {
    {{Role::kAttentionNormGateIn, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kAttentionNormGateOutParts = {
    {{Role::kAttentionNormGateOut, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kMlpNormGateInParts = {
    {{Role::kMlpNormGateIn, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kMlpNormGateOutParts = {
    {{Role::kMlpNormGateOut, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kAttentionConnectionParts = {
    {{Role::kAttentionConnection, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kMlpConnectionParts = {
    {{Role::kMlpConnection, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kOParts = {{{Role::kO, Role::kOBias}}};
inline constexpr std::array<LinearPart, 3> kGateUpParts = {{
    {Role::kGate, Role::kGateBias},
    {Role::kUp, Role::kUpBias},
    {Role::kGateUp, Role::kGateUpBias},
}};
inline constexpr std::array<LinearPart, 1> kDownParts = {{{Role::kDown, Role::kDownBias}}};
inline constexpr std::array<LinearPart, 3> kQkvLowInParts = {{
    {Role::kQLowIn, Role::kCount},
    {Role::kKLowIn, Role::kCount},
    {Role::kVLowIn, Role::kCount},
}};
inline constexpr std::array<LinearPart, 1> kQLowOutParts = {{{Role::kQLowOut, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kKLowOutParts = {{{Role::kKLowOut, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kVLowOutParts = {{{Role::kVLowOut, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kGateUpLowInParts = {
    {{Role::kGateUpLowIn, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kGateUpLowOutParts = {
    {{Role::kGateUpLowOut, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kBlockOutParts = {{{Role::kBlockOut, Role::kCount}}};

inline constexpr std::array<LinearPart, 1> kRouterParts = {{{Role::kRouter, Role::kRouterBias}}};
inline constexpr std::array<LinearPart, 1> kExpertsInParts = {
    {{Role::kExpertsIn, Role::kExpertsInBias}}};
inline constexpr std::array<LinearPart, 1> kExpertsOutParts = {
    {{Role::kExpertsOut, Role::kExpertsOutBias}}};
inline constexpr std::array<LinearPart, 3> kSharedGateUpParts = {{
    {Role::kSharedGate, Role::kSharedGateBias},
    {Role::kSharedUp, Role::kSharedUpBias},
    {Role::kSharedGateUp, Role::kCount},
}};
inline constexpr std::array<LinearPart, 1> kSharedDownParts = {
    {{Role::kSharedDown, Role::kSharedDownBias}}};
inline constexpr std::array<LinearPart, 1> kSharedOutputGateParts = {
    {{Role::kSharedOutputGate, Role::kCount}}};
inline constexpr std::array<LinearPart, 3> kExpertGateUpParts = {{
    {Role::kExpertGate, Role::kExpertGateBias},
    {Role::kExpertUp, Role::kExpertUpBias},
    {Role::kExpertGateUp, Role::kExpertGateUpBias},
}};
inline constexpr std::array<LinearPart, 1> kExpertDownParts = {
    {{Role::kExpertDown, Role::kExpertDownBias}}};

inline constexpr std::array<LinearPart, 6> kStateInParts = {{
    {Role::kStateIn, Role::kStateInBias},
    {Role::kStateKeyIn, Role::kCount},
    {Role::kStateValueIn, Role::kStateValueInBias},
    {Role::kStateGateIn, Role::kCount},
    {Role::kStateSecondIn, Role::kCount},
    {Role::kStateThirdIn, Role::kCount},
}};
inline constexpr std::array<LinearPart, 1> kStatePartsParts = {{{Role::kStateParts, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kStateGateUpParts = {
    {{Role::kStateGateUp, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kStepParts = {{{Role::kStep, Role::kStepBias}}};
inline constexpr std::array<LinearPart, 1> kLayerInputGateParts = {
    {{Role::kLayerInputGate, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kLayerInputOutParts = {
    {{Role::kLayerInputOut, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kStreamRouterParts = {
    {{Role::kStreamRouter, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kLaurelInParts = {{{Role::kLaurelIn, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kLaurelOutParts = {{{Role::kLaurelOut, Role::kCount}}};
inline constexpr std::array<LinearPart, 1> kDistanceKeyParts = {
    {{Role::kDistanceKey, Role::kDistanceKeyBias}}};
inline constexpr std::array<LinearPart, 1> kDistanceQueryParts = {
    {{Role::kDistanceQuery, Role::kDistanceQueryBias}}};
inline constexpr std::array<LinearPart, 1> kStateOutParts = {
    {{Role::kStateOut, Role::kStateOutBias}}};

inline constexpr std::array<LayerLinear, 4> kLayerLinears = {{
    {&LayerWeights::qkv, kQkvParts},
    {&LayerWeights::o, kOParts},
    {&LayerWeights::gate_up, kGateUpParts},
    {&LayerWeights::down, kDownParts},
}};

// Of latent attention, of layers with a state, of those with experts, of distances and of the
// choice of tokens, beside them.
inline constexpr std::array<LayerLinear, 36> kOtherLinears = {{
    {&LayerWeights::latent_down, kLatentDownParts},
    {&LayerWeights::state_in, kStateInParts},
    {&LayerWeights::state_parts, kStatePartsParts},
    {&LayerWeights::state_gate_up, kStateGateUpParts},
    {&LayerWeights::step, kStepParts},
    {&LayerWeights::state_out, kStateOutParts},
    {&LayerWeights::router, kRouterParts},
    {&LayerWeights::experts_in, kExpertsInParts},
    {&LayerWeights::experts_out, kExpertsOutParts},
    {&LayerWeights::shared_gate_up, kSharedGateUpParts},
    {&LayerWeights::shared_down, kSharedDownParts},
    {&LayerWeights::shared_output_gate, kSharedOutputGateParts},
    {&LayerWeights::layer_input_gate, kLayerInputGateParts},
    {&LayerWeights::layer_input_out, kLayerInputOutParts},
    {&LayerWeights::stream_router, kStreamRouterParts},
    {&LayerWeights::laurel_in, kLaurelInParts},
    {&LayerWeights::laurel_out, kLaurelOutParts},
    {&LayerWeights::distance_key, kDistanceKeyParts},
    {&LayerWeights::distance_query, kDistanceQueryParts},
    {&LayerWeights::indexer_query, kIndexerQueryParts},
    {&LayerWeights::indexer_key, kIndexerKeyParts},
    {&LayerWeights::indexer_weights, kIndexerWeightsParts},
    {&LayerWeights::entry_rows, kEntryRowsParts},
    {&LayerWeights::indexer_entry_rows, kIndexerEntryRowsParts},
    {&LayerWeights::value_gate, kValueGateParts},
    {&LayerWeights::attention_norm_gate_in, kAttentionNormGateInParts},
    {&LayerWeights::attention_norm_gate_out, kAttentionNormGateOutParts},
    {&LayerWeights::mlp_norm_gate_in, kMlpNormGateInParts},
    {&LayerWeights::mlp_norm_gate_out, kMlpNormGateOutParts},
    {&LayerWeights::qkv_low_in, kQkvLowInParts},
    {&LayerWeights::q_low_out, kQLowOutParts},
    {&LayerWeights::k_low_out, kKLowOutParts},
    {&LayerWeights::v_low_out, kVLowOutParts},
    {&LayerWeights::gate_up_low_in, kGateUpLowInParts},
    {&LayerWeights::gate_up_low_out, kGateUpLowOutParts},
    {&LayerWeights::block_out, kBlockOutParts},
}};

// Matrices that are parameters, and no linears that an adapter could name.
inline constexpr std::array<LayerLinear, 2> kParameterLinears = {{
    {&LayerWeights::attention_connection, kAttentionConnectionParts},
    {&LayerWeights::mlp_connection, kMlpConnectionParts},
}};

// One for each expert.
struct ExpertLinear {
  ExpertLinears LayerWeights::*target;
  std::span<const LinearPart> parts;
};

inline constexpr std::array<ExpertLinear, 2> kExpertLinears = {{
    {&LayerWeights::experts_gate_up, kExpertGateUpParts},
    {&LayerWeights::experts_down, kExpertDownParts},
}};

inline constexpr std::array<LayerVector, 54> kLayerVectors = {{
    {&LayerWeights::attention_norm, Role::kAttentionNorm},
    {&LayerWeights::attention_norm_bias, Role::kAttentionNormBias},
    {&LayerWeights::q_norm, Role::kQNorm},
    {&LayerWeights::q_norm_bias, Role::kQNormBias},
    {&LayerWeights::k_norm, Role::kKNorm},
    {&LayerWeights::k_norm_bias, Role::kKNormBias},
    {&LayerWeights::sinks, Role::kSinks},
    {&LayerWeights::query_norm, Role::kQueryDownNorm},
    {&LayerWeights::latent_norm, Role::kLatentNorm},
    {&LayerWeights::attention_connection_base, Role::kAttentionConnectionBase},
    {&LayerWeights::attention_connection_scale, Role::kAttentionConnectionScale},
    {&LayerWeights::mlp_connection_base, Role::kMlpConnectionBase},
    {&LayerWeights::mlp_connection_scale, Role::kMlpConnectionScale},
    {&LayerWeights::indexer_query_norm, Role::kIndexerQueryNorm},
    {&LayerWeights::indexer_input_norm, Role::kIndexerInputNorm},
    {&LayerWeights::indexer_input_norm_bias, Role::kIndexerInputNormBias},
    {&LayerWeights::indexer_key_norm, Role::kIndexerKeyNorm},
    {&LayerWeights::indexer_key_norm_bias, Role::kIndexerKeyNormBias},
    {&LayerWeights::entry_gate_bias, Role::kEntryGateBias},
    {&LayerWeights::entry_norm, Role::kEntryNorm},
    {&LayerWeights::indexer_entry_gate_bias, Role::kIndexerEntryGateBias},
    {&LayerWeights::indexer_entry_norm, Role::kIndexerEntryNorm},
    {&LayerWeights::attention_inner_norm, Role::kAttentionInnerNorm},
    {&LayerWeights::attention_post_norm, Role::kAttentionPostNorm},
    {&LayerWeights::mlp_norm, Role::kMlpNorm},
    {&LayerWeights::mlp_norm_bias, Role::kMlpNormBias},
    {&LayerWeights::mlp_inner_norm, Role::kMlpInnerNorm},
    {&LayerWeights::block_norm, Role::kBlockNorm},
    {&LayerWeights::mlp_post_norm, Role::kMlpPostNorm},
    {&LayerWeights::dense_post_norm, Role::kDensePostNorm},
    {&LayerWeights::experts_norm, Role::kExpertsNorm},
    {&LayerWeights::experts_post_norm, Role::kExpertsPostNorm},
    {&LayerWeights::router_norm, Role::kRouterNorm},
    {&LayerWeights::layer_input_post_norm, Role::kLayerInputPostNorm},
    {&LayerWeights::stream_router_norm, Role::kStreamRouterNorm},
    {&LayerWeights::stream_prediction, Role::kStreamPrediction},
    {&LayerWeights::stream_correction, Role::kStreamCorrection},
    {&LayerWeights::stream_column_scales, Role::kStreamColumnScales},
    {&LayerWeights::laurel_norm, Role::kLaurelNorm},
    {&LayerWeights::choice_bias, Role::kChoiceBias},
    {&LayerWeights::expert_scale, Role::kExpertScale},
    {&LayerWeights::conv, Role::kConv},
    {&LayerWeights::conv_bias, Role::kConvBias},
    {&LayerWeights::head_step_bias, Role::kStateStepBias},
    {&LayerWeights::decay, Role::kDecay},
    {&LayerWeights::decay, Role::kRgLruDecay},
    {&LayerWeights::decay, Role::kDecayRate},
    {&LayerWeights::input_gate_bias, Role::kInputGateBias},
    {&LayerWeights::decay_gate_bias, Role::kDecayGateBias},
    {&LayerWeights::skip, Role::kSkip},
    {&LayerWeights::state_norm, Role::kStateNorm},
    {&LayerWeights::step_norm, Role::kStepNorm},
    {&LayerWeights::input_norm, Role::kInputNorm},
    {&LayerWeights::output_norm, Role::kOutputNorm},
}};

// Two vectors that are the rows of one on the device.
struct LayerVectorPair {
  DeviceVector LayerWeights::*target;
  Role first;
  Role second;
};

inline constexpr std::array<LayerVectorPair, 2> kLayerVectorPairs = {{
    {&LayerWeights::head_scales, Role::kQueryScale, Role::kQueryScaleOffset},
    {&LayerWeights::indexer_scales, Role::kIndexerScale, Role::kIndexerScaleOffset},
}};

// One for each head of the layer's state.
struct HeadLinear {
  HeadMatrices LayerWeights::*target;
  Role role;
};

inline constexpr std::array<HeadLinear, 2> kHeadLinears = {{
    {&LayerWeights::input_gate, Role::kInputGate},
    {&LayerWeights::decay_gate, Role::kDecayGate},
}};

// Before the first layer and behind the last.
struct ModelLinear {
  Linear ModelWeights::*target;
  std::array<LinearPart, 1> parts;
};

inline constexpr std::array<ModelLinear, 4> kModelLinears = {{
    {&ModelWeights::embedding_in, {{{Role::kEmbeddingIn, Role::kEmbeddingInBias}}}},
    {&ModelWeights::layer_input_in, {{{Role::kLayerInputIn, Role::kCount}}}},
    {&ModelWeights::head_in, {{{Role::kHeadIn, Role::kCount}}}},
    {&ModelWeights::head_dense, {{{Role::kHeadDense, Role::kHeadDenseBias}}}},
}};

// One for each stream but the first.
struct StreamLinear {
  std::vector<Linear> ModelWeights::*target;
  std::array<LinearPart, 1> parts;
};

inline constexpr std::array<StreamLinear, 2> kStreamLinears = {{
    {&ModelWeights::stream_in, {{{Role::kStreamIn, Role::kCount}}}},
    {&ModelWeights::stream_out, {{{Role::kStreamOut, Role::kCount}}}},
}};

struct ModelMatrix {
  std::unique_ptr<Matrix> ModelWeights::*target;
  Role role;
};

struct ModelVector {
  DeviceVector ModelWeights::*target;
  Role role;
};

inline constexpr std::array<ModelMatrix, 6> kModelMatrices = {{
    {&ModelWeights::token_embedding, Role::kTokenEmbedding},
    {&ModelWeights::position_embedding, Role::kPositionEmbedding},
    {&ModelWeights::type_embedding, Role::kTypeEmbedding},
    {&ModelWeights::untied_lm_head, Role::kLmHead},
    {&ModelWeights::head_connection, Role::kHeadConnection},
    {&ModelWeights::layer_input_table, Role::kLayerInputTable},
}};

inline constexpr std::array<ModelVector, 11> kModelVectors = {{
    {&ModelWeights::embedding_norm, Role::kEmbeddingNorm},
    {&ModelWeights::embedding_norm_bias, Role::kEmbeddingNormBias},
    {&ModelWeights::layer_input_norm, Role::kLayerInputNorm},
    {&ModelWeights::hidden_norm, Role::kHiddenNorm},
    {&ModelWeights::final_norm, Role::kFinalNorm},
    {&ModelWeights::final_norm_bias, Role::kFinalNormBias},
    {&ModelWeights::head_connection_base, Role::kHeadConnectionBase},
    {&ModelWeights::head_connection_scale, Role::kHeadConnectionScale},
    {&ModelWeights::lm_head_bias, Role::kLmHeadBias},
    {&ModelWeights::head_norm, Role::kHeadNorm},
    {&ModelWeights::head_norm_bias, Role::kHeadNormBias},
}};

}  // namespace tgi
