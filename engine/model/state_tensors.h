// Tables of tensors of layers that carry a state, which several families have under the same names.
#pragma once

#include <array>

#include "engine/model/architecture.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/state_fields.h"

namespace tgi {

// Around the layers of models that consist of mixers alone.
inline constexpr auto kBackboneTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "backbone.embeddings.weight", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "backbone.norm_f.weight", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "backbone.layers.{layer}.norm.weight", Dim::kOne, Dim::kHidden,
     Split::kNone, has_mixer},
});

// What Mamba 1 and 2 begin and end with, as layers of their own.
inline constexpr auto kMixerInTensors = std::to_array<TensorSpec>({
    {Role::kStateIn, "backbone.layers.{layer}.mixer.in_proj.weight", Dim::kStateIn, Dim::kHidden},
    {Role::kStateInBias, "backbone.layers.{layer}.mixer.in_proj.bias", Dim::kOne, Dim::kStateIn,
     Split::kNone, has_state_in_bias},
    {Role::kConv, "backbone.layers.{layer}.mixer.conv1d.weight", Dim::kOne, Dim::kConvWeights},
    {Role::kConvBias, "backbone.layers.{layer}.mixer.conv1d.bias", Dim::kOne, Dim::kConvChannels,
     Split::kNone, has_conv_bias},
});
inline constexpr auto kMixerOutTensors = std::to_array<TensorSpec>({
    {Role::kStateOut, "backbone.layers.{layer}.mixer.out_proj.weight", Dim::kHidden,
     Dim::kStateChannels},
    {Role::kStateOutBias, "backbone.layers.{layer}.mixer.out_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kNone, has_state_out_bias},
});

inline constexpr auto kMambaTensors = join_tensors(
    kMixerInTensors,
    std::to_array<TensorSpec>({
        {Role::kStateParts, "backbone.layers.{layer}.mixer.x_proj.weight", Dim::kStateParts,
         Dim::kStateChannels},
        {Role::kStep, "backbone.layers.{layer}.mixer.dt_proj.weight", Dim::kStateChannels,
         Dim::kStepRank},
        {Role::kStepBias, "backbone.layers.{layer}.mixer.dt_proj.bias", Dim::kOne,
         Dim::kStateChannels},
        {Role::kDecay, "backbone.layers.{layer}.mixer.A_log", Dim::kOne, Dim::kChannelDecay},
        {Role::kSkip, "backbone.layers.{layer}.mixer.D", Dim::kOne, Dim::kStateChannels},
    }),
    kMixerOutTensors);

inline constexpr auto kMamba2Tensors = join_tensors(
    kMixerInTensors,
    std::to_array<TensorSpec>({
        {Role::kStateStepBias, "backbone.layers.{layer}.mixer.dt_bias", Dim::kOne,
         Dim::kStateHeads},
        {Role::kDecay, "backbone.layers.{layer}.mixer.A_log", Dim::kOne, Dim::kStateHeads},
        {Role::kSkip, "backbone.layers.{layer}.mixer.D", Dim::kOne, Dim::kStateHeads},
        {Role::kStateNorm, "backbone.layers.{layer}.mixer.norm.weight", Dim::kOne,
         Dim::kStateChannels},
    }),
    kMixerOutTensors);

// Mamba 2 among layers of attention.
inline constexpr auto kHybridMamba2Tensors = std::to_array<TensorSpec>({
    {Role::kStateIn, "model.layers.{layer}.mamba.in_proj.weight", Dim::kStateIn, Dim::kHidden},
    {Role::kStateInBias, "model.layers.{layer}.mamba.in_proj.bias", Dim::kOne, Dim::kStateIn,
     Split::kNone, has_state_in_bias},
    {Role::kConv, "model.layers.{layer}.mamba.conv1d.weight", Dim::kOne, Dim::kConvWeights},
    {Role::kConvBias, "model.layers.{layer}.mamba.conv1d.bias", Dim::kOne, Dim::kConvChannels,
     Split::kNone, has_conv_bias},
    {Role::kStateStepBias, "model.layers.{layer}.mamba.dt_bias", Dim::kOne, Dim::kStateHeads},
    {Role::kDecay, "model.layers.{layer}.mamba.A_log", Dim::kOne, Dim::kStateHeads},
    {Role::kSkip, "model.layers.{layer}.mamba.D", Dim::kOne, Dim::kStateHeads},
    {Role::kStateNorm, "model.layers.{layer}.mamba.norm.weight", Dim::kOne, Dim::kStateChannels,
     Split::kNone, has_state_norm},
    {Role::kStateOut, "model.layers.{layer}.mamba.out_proj.weight", Dim::kHidden,
     Dim::kStateChannels},
    {Role::kStateOutBias, "model.layers.{layer}.mamba.out_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kNone, has_state_out_bias},
});

inline constexpr auto kFeedForwardTensors = std::to_array<TensorSpec>({
    {Role::kGate, "model.layers.{layer}.feed_forward.gate_proj.weight", Dim::kIntermediate,
     Dim::kHidden, Split::kRows, has_dense_mlp},
    {Role::kUp, "model.layers.{layer}.feed_forward.up_proj.weight", Dim::kIntermediate,
     Dim::kHidden, Split::kRows, has_dense_mlp},
    {Role::kDown, "model.layers.{layer}.feed_forward.down_proj.weight", Dim::kHidden,
     Dim::kIntermediate, Split::kColumns, has_dense_mlp},
});
inline constexpr auto kFeedForwardBiasTensors = std::to_array<TensorSpec>({
    {Role::kGateBias, "model.layers.{layer}.feed_forward.gate_proj.bias", Dim::kOne,
     Dim::kIntermediate, Split::kRows, has_mlp_bias},
    {Role::kUpBias, "model.layers.{layer}.feed_forward.up_proj.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows, has_mlp_bias},
    {Role::kDownBias, "model.layers.{layer}.feed_forward.down_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, has_mlp_bias},
});

// Decoders with Mamba 2, attention or both in a layer, between one norm and an MLP behind another.
inline constexpr auto kMamba2DecoderTensors = join_tensors(
    kLlamaEmbeddingTensors,
    std::to_array<TensorSpec>({
        {Role::kFinalNorm, "model.final_layernorm.weight", Dim::kOne, Dim::kHidden},
        {Role::kMlpNorm, "model.layers.{layer}.pre_ff_layernorm.weight", Dim::kOne, Dim::kHidden},
    }),
    kOneNormTensors,
    kLlamaAttentionTensors,
    kLlamaQkvBiasTensors,
    kLlamaOBiasTensors,
    kHybridMamba2Tensors,
    kFeedForwardTensors,
    kFeedForwardBiasTensors);

}  // namespace tgi
