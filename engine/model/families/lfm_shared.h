// What LFM 2 and 3 have in common: short convolutions between gates, and the names of what stands
// in every layer.
#pragma once

#include <array>
#include <cstdint>

#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/state_fields.h"

namespace tgi {

inline void read_short_convolution(const JsonReader& config,
                                   int64_t default_kernel,
                                   ModelConfig& model) {
  StateConfig& state = model.state;
  state.kind = StateKind::kShortConv;
  state.conv_kernel = read_size(config, "conv_L_cache", default_kernel, kMaxConvKernel);
  state.num_heads = 1;
  state.head_dim = model.hidden_size;
  const bool has_bias = config.boolean_or("conv_bias", false);
  state.has_conv_bias = state.has_in_bias = state.has_out_bias = has_bias;
}

inline constexpr auto kLfmTensors = std::to_array<TensorSpec>({
    {Role::kFinalNorm, "model.embedding_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kAttentionNorm, "model.layers.{layer}.operator_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNorm, "model.layers.{layer}.ffn_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kStateIn, "model.layers.{layer}.conv.in_proj.weight", Dim::kStateIn, Dim::kHidden},
    {Role::kStateInBias, "model.layers.{layer}.conv.in_proj.bias", Dim::kOne, Dim::kStateIn,
     Split::kNone, has_state_in_bias},
    {Role::kConv, "model.layers.{layer}.conv.conv.weight", Dim::kOne, Dim::kConvWeights},
    {Role::kConvBias, "model.layers.{layer}.conv.conv.bias", Dim::kOne, Dim::kConvChannels,
     Split::kNone, has_conv_bias},
    {Role::kStateOut, "model.layers.{layer}.conv.out_proj.weight", Dim::kHidden,
     Dim::kStateChannels},
    {Role::kStateOutBias, "model.layers.{layer}.conv.out_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kNone, has_state_out_bias},
    {Role::kGate, "model.layers.{layer}.feed_forward.w1.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows, has_dense_mlp},
    {Role::kUp, "model.layers.{layer}.feed_forward.w3.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows, has_dense_mlp},
    {Role::kDown, "model.layers.{layer}.feed_forward.w2.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns, has_dense_mlp},
});

}  // namespace tgi
