// Ops of layers that carry a state from token to token instead of a cache of keys and values: part
// of the specification in backend.h.
//
// Each running slot has one state for each such layer. It is zero before the first token of a
// sequence (context index 0), and goes on over the tokens of a step and from step to step, token
// by token in plain order: so its bits depend on neither chunks nor the batch.
//
// Sources: Mamba (https://arxiv.org/abs/2312.00752), Mamba 2 (https://arxiv.org/abs/2405.21060),
// gated delta rule (https://arxiv.org/abs/2412.06464), the same with a decay for each number of a
// key (Kimi delta attention, https://arxiv.org/abs/2510.26692), real-gated linear recurrent unit
// (Griffin, https://arxiv.org/abs/2402.19427, section 2.4).
#pragma once

#include <cstdint>
#include <limits>

#include "engine/tensor/tensor.h"

namespace tgi {

// The same for all layers of a model that have a state.
struct StateLayout {
  int32_t num_layers = 0;       // 0: the model has none
  int32_t conv_channels = 0;    // of the convolution
  int32_t conv_kernel = 0;      // tokens that it sees, the present one included
  int32_t num_heads = 0;        // 0: nothing but the convolution
  int32_t head_dim = 0;         // channels of a head
  int32_t state_size = 0;       // numbers for each channel
  bool decays_numbers = false;  // of the gated delta rule: each number of a head by itself

  bool operator==(const StateLayout&) const = default;
};

inline constexpr int32_t kMaxConvKernel = 16;

// Channels of a head are held in runs of this many.
inline constexpr int32_t kStateLanes = 16;

constexpr int64_t conv_state_size(const StateLayout& layout) {
  return layout.conv_kernel == 0 ? 0 : (layout.conv_kernel - int64_t{1}) * layout.conv_channels;
}
constexpr int64_t num_lane_blocks(const StateLayout& layout) {
  return (layout.head_dim + int64_t{kStateLanes} - 1) / kStateLanes;
}
constexpr int64_t recurrent_state_size(const StateLayout& layout) {
  return layout.num_heads * num_lane_blocks(layout) * kStateLanes * layout.state_size;
}
// Numbers of one layer and slot.
constexpr int64_t state_numbers(const StateLayout& layout) {
  return conv_state_size(layout) + recurrent_state_size(layout);
}
constexpr int64_t state_bytes(const StateLayout& layout, int64_t num_slots) {
  return num_slots * layout.num_layers * state_numbers(layout) * int64_t{sizeof(float)};
}

// Each channel by itself: out_t = sum over j of weight[j] * x_{t - kernel + 1 + j} + bias, zeros
// before the first token.
struct ConvArgs {
  int32_t layer = 0;               // among those with a state
  bool silu = false;               // of the sum
  const Tensor* weight = nullptr;  // (kernel, channels), f32
  const Tensor* bias = nullptr;    // (optional) (1, channels), f32
  Tensor x;                        // (num_tokens, channels)
  Tensor x_gate;    // (optional: data null) (num_tokens, channels): x *= x_gate first
  Tensor out_gate;  // (optional: data null) (num_tokens, channels): multiplied with the result
  Tensor out;       // (num_tokens, channels); must not overlap x
};

// Mamba 1. For each channel and number of its state: h = exp(step * decay) * h + step * b * x;
// out = sum of c * h + skip * x, where step = softplus(dt).
struct ChannelScanArgs {
  int32_t layer = 0;
  const Tensor* decay = nullptr;  // (state_size, channels), f32, negative
  const Tensor* skip = nullptr;   // (1, channels), f32
  Tensor x;                       // (num_tokens, channels)
  Tensor dt;                      // (num_tokens, channels); overwritten
  Tensor b;                       // (num_tokens, state_size)
  Tensor c;                       // (num_tokens, state_size)
  Tensor out;                     // (num_tokens, channels); may be x
};

// Mamba 2: the same with one step, decay and skip for all channels of a head, and b and c for each
// group of heads; step = softplus(dt + dt_bias), held between min_step and max_step.
struct HeadScanArgs {
  int32_t layer = 0;
  int32_t num_groups = 1;  // divides the heads
  float min_step = 0.0F;
  float max_step = std::numeric_limits<float>::infinity();
  const Tensor* dt_bias = nullptr;  // (1, num_heads), f32
  const Tensor* decay = nullptr;    // (1, num_heads), f32, negative
  const Tensor* skip = nullptr;     // (1, num_heads), f32
  Tensor x;                         // (num_tokens, num_heads * head_dim)
  Tensor dt;                        // (num_tokens, num_heads); overwritten
  Tensor b;                         // (num_tokens, num_groups * state_size)
  Tensor c;                         // (num_tokens, num_groups * state_size)
  Tensor out;                       // (num_tokens, num_heads * head_dim); may be x
};

// Gated delta rule. q and k of a key head are divided by their length, q by sqrt(state_size) too;
// value head j reads key head j / (num_heads / num_key_heads). For each value head, with a state
// of (state_size, head_dim): h *= exp(decay * softplus(dt + dt_bias)); h += k (outer) strength *
// sigmoid(beta) * (v - h^T k); out = h^T q. Where each number of a head decays by itself, every row
// of h has a dt and a dt_bias of its own.
struct DeltaRuleArgs {
  int32_t layer = 0;
  int32_t num_key_heads = 1;  // divides the heads
  float strength = 1.0F;
  // (optional) Below 0: the logarithm of what is kept is floor * sigmoid(-decay * (dt + dt_bias)),
  // which is never below it. 0: as above.
  float floor = 0.0F;
  const Tensor* dt_bias = nullptr;  // (1, columns of dt), f32
  const Tensor* decay = nullptr;    // (1, num_heads), f32, negative
  Tensor q;                         // (num_tokens, num_key_heads * state_size); overwritten
  Tensor k;                         // (num_tokens, num_key_heads * state_size); overwritten
  Tensor v;                         // (num_tokens, num_heads * head_dim)
  Tensor beta;                      // (num_tokens, num_heads); overwritten
  // (num_tokens, num_heads), or where StateLayout.decays_numbers (num_tokens, num_heads *
  // state_size); overwritten
  Tensor dt;
  Tensor out;  // (num_tokens, num_heads * head_dim); may be v
};
inline constexpr float kDeltaNormEps = 1e-6F;  // added to the square of a length

// Real-gated linear recurrent unit (RG-LRU), whose state is one number for each channel:
//   a = exp(decay * sigmoid(decay_gate + decay_bias))
//   h = a * h + sqrt(1 - a^2) * sigmoid(input_gate + input_bias) * x
//   out = h
// Of a sequence's first token the square root is 1. REQUIRES: StateLayout.state_size 1.
struct RgLruArgs {
  int32_t layer = 0;
  const Tensor* decay = nullptr;       // (1, channels), f32, negative
  const Tensor* input_bias = nullptr;  // (1, channels), f32
  const Tensor* decay_bias = nullptr;  // (1, channels), f32
  Tensor x;                            // (num_tokens, channels)
  Tensor input_gate;                   // (num_tokens, channels)
  Tensor decay_gate;                   // (num_tokens, channels)
  Tensor out;                          // (num_tokens, channels); may be x
};

enum class GateKind : uint8_t { kSilu, kSigmoid, kSoftplus };

// In place: x *= silu(gate), or as `kind` says, and an RMS norm of each run of group_size columns
// before or after it.
struct GatedNormArgs {
  GateKind kind = GateKind::kSilu;
  bool norm_first = false;
  float eps = 0.0F;
  // (optional: no norm) f32, (1, cols), or (1, group_size) for all groups.
  const Tensor* weight = nullptr;
  int64_t group_size = 0;  // divides the columns
  Tensor x;                // (rows, cols)
  // (rows, cols); where there is no norm also one for each run of columns of x, all as long.
  Tensor gate;
};

}  // namespace tgi
