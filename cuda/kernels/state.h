// Kernels of layers that carry a state. Launches only: which slots a step's rows belong to and
// where in their sequences they are is read on the device, so that a captured step can be replayed
// for others.
//
// Definitions: engine/device/state_ops.h. Activations are bf16 or f16, states and all sums f32. A
// state goes on over a step's tokens one by one, whatever their number, by the same arithmetic: so
// the bits of a row depend on neither chunks nor the batch.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/kernels/step.h"
#include "engine/device/state_ops.h"

namespace tgi::cuda {

inline constexpr int32_t kMaxStateSize = 512;        // numbers of a channel that kernels hold
inline constexpr int32_t kMaxDecayingNumbers = 256;  // the same, where each decays by itself

// A slot's state of one layer as it lies in device memory: the last inputs of the convolution,
// (conv_kernel - 1, conv_channels), then the recurrent state, (num_heads, head_dim, state_size
// rounded up to 4): the numbers of a channel are neighbours.
struct SlotStateShape {
  int64_t conv_floats = 0;
  int64_t recurrent_floats = 0;

  static constexpr SlotStateShape of(const StateLayout& layout) {
    constexpr auto rounded = [](int64_t count, int64_t to) { return (count + to - 1) / to * to; };
    return {.conv_floats = rounded(conv_state_size(layout), 32),
            .recurrent_floats = rounded(
                int64_t{layout.num_heads} * layout.head_dim * rounded(layout.state_size, 4), 32)};
  }
  constexpr int64_t floats() const { return conv_floats + recurrent_floats; }
};

// The states of all slots in one layer, and the step's rows. States of nobody's rows, whose slot is
// num_slots, are kept nowhere.
struct StateStep {
  float* states = nullptr;  // of slot 0: convolution's or recurrent
  int64_t slot_stride = 0;  // floats
  int32_t num_slots = 0;
  const TokenRow* rows = nullptr;
  const SequenceRows* sequences = nullptr;
  int32_t num_rows = 0;
  int32_t num_sequences = 0;  // padding rows of a captured step are one each
};

void launch_causal_conv(cudaStream_t stream, const ConvArgs& args, const StateStep& step);
void launch_channel_scan(cudaStream_t stream, const ChannelScanArgs& args, const StateStep& step);
void launch_head_scan(cudaStream_t stream,
                      const HeadScanArgs& args,
                      const StateLayout& layout,
                      const StateStep& step);
void launch_delta_rule(cudaStream_t stream,
                       const DeltaRuleArgs& args,
                       const StateLayout& layout,
                       const StateStep& step);
void launch_rg_lru(cudaStream_t stream, const RgLruArgs& args, const StateStep& step);
void launch_gated_norm(cudaStream_t stream, const GatedNormArgs& args);

}  // namespace tgi::cuda
