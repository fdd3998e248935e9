// Transformer: the layers that carry a state from token to token.
#include "engine/model/transformer.h"

namespace tgi {

void Transformer::multiply(const Tensor& x, float factor) {
  if (factor != 1.0F) device_.add({.x = {}, .y = x, .y_multiplier = factor, .out = x});
}

Tensor Transformer::multiplied(const Tensor& x, float factor) {
  if (factor == 1.0F) return x;
  const Tensor out = workspace_.scaled.first_rows(x.rows);
  device_.add({.x = {}, .y = x, .y_multiplier = factor, .out = out});
  return out;
}

void Transformer::run_state(int32_t layer,
                            const LayerWeights& weights,
                            const Tensor& stream,
                            const Tensor& out) {
  const Tensor x = multiplied(stream, config_.state.input_multiplier);
  const int32_t state = state_index_[static_cast<size_t>(layer)];
  int64_t first = 0;  // of the columns of `convolved` that hold what comes out
  switch (config_.state.kind) {
    case StateKind::kNone:
      break;
    case StateKind::kShortConv:
      run_short_conv(state, weights, x);
      break;
    case StateKind::kMamba:
      run_mamba(state, weights, x);
      break;
    case StateKind::kMamba2:
      run_mamba2(state, weights, x);
      break;
    case StateKind::kDeltaRule:
      run_delta_rule(state, weights, x);
      first = 2 * config_.state.num_keys();
      break;
    case StateKind::kRgLru:
      run_rg_lru(state, weights, x);
      break;
    case StateKind::kLightning:
      run_lightning(state, weights, x);
      first = 2 * config_.state.num_keys();
      break;
  }
  const Tensor given =
      workspace_.convolved.first_rows(x.rows).columns(first, config_.state.num_channels());
  weights.state_out.apply(device_, given, out);
  multiply(out, config_.state.output_multiplier);
}

// in_proj: a gate before the convolution, a gate after it, what is convolved.
void Transformer::run_short_conv(int32_t state, const LayerWeights& weights, const Tensor& x) {
  const int64_t channels = config_.state.num_channels();
  const Tensor in = workspace_.state_in.first_rows(x.rows);
  weights.state_in.apply(device_, x, in);
  device_.causal_conv({.layer = state,
                       .weight = weights.conv.get(),
                       .bias = weights.conv_bias.get(),
                       .x = in.columns(2 * channels, channels),
                       .x_gate = in.columns(0, channels),
                       .out_gate = in.columns(channels, channels),
                       .out = workspace_.convolved.first_rows(x.rows)});
}

// The convolution of recurrent layers, to `convolved`.
void Transformer::convolve(int32_t state, const LayerWeights& weights, bool silu, const Tensor& x) {
  device_.causal_conv({.layer = state,
                       .silu = silu,
                       .weight = weights.conv.get(),
                       .bias = weights.conv_bias.get(),
                       .x = x,
                       .x_gate = {},
                       .out_gate = {},
                       .out = workspace_.convolved.first_rows(x.rows)});
}

// in_proj: x, z.
void Transformer::run_mamba(int32_t state, const LayerWeights& weights, const Tensor& x) {
  const StateConfig& with = config_.state;
  const int64_t channels = with.num_channels();
  const Tensor in = workspace_.state_in.first_rows(x.rows);
  const Tensor convolved = workspace_.convolved.first_rows(x.rows);
  const Tensor parts = workspace_.state_parts.first_rows(x.rows);
  const Tensor steps = workspace_.steps.first_rows(x.rows);
  weights.state_in.apply(device_, x, in);
  convolve(state, weights, true, in.columns(0, channels));
  weights.state_parts.apply(device_, convolved, parts);
  if (with.norms_parts) norm_mamba_parts(weights, parts);
  weights.step.apply(device_, parts.columns(0, with.step_rank), steps);
  device_.channel_scan({.layer = state,
                        .decay = weights.decay.get(),
                        .skip = weights.skip.get(),
                        .x = convolved,
                        .dt = steps,
                        .b = parts.columns(with.step_rank, with.state_size),
                        .c = parts.columns(with.step_rank + with.state_size, with.state_size),
                        .out = convolved});
  device_.gated_norm({.x = convolved, .gate = in.columns(channels, channels)});
}

// With weights, or none.
void Transformer::norm_mamba_parts(const LayerWeights& weights, const Tensor& parts) {
  const StateConfig& with = config_.state;
  const auto norm = [&](const DeviceVector& weight, int64_t begin, int64_t count) {
    const Tensor ones = workspace_.ones.columns(0, count);
    norm_in_place(NormKind::kRms, with.norm_eps, weight.get() == nullptr ? &ones : weight.get(),
                  parts.columns(begin, count));
  };
  norm(weights.step_norm, 0, with.step_rank);
  norm(weights.input_norm, with.step_rank, with.state_size);
  norm(weights.output_norm, with.step_rank + with.state_size, with.state_size);
}

// in_proj: z, x, b, c, dt; x, b and c are convolved.
void Transformer::run_mamba2(int32_t state, const LayerWeights& weights, const Tensor& x) {
  const StateConfig& with = config_.state;
  const int64_t channels = with.num_channels();
  const int64_t keys = with.num_keys();
  const int64_t sizes[] = {channels, channels, keys, keys, with.num_heads};
  const Tensor in = workspace_.state_in.first_rows(x.rows);
  const Tensor convolved = workspace_.convolved.first_rows(x.rows);
  weights.state_in.apply(device_, x, in);
  int64_t begin = 0;
  for (size_t part = 0; part < with.part_multipliers.size(); ++part) {
    multiply(in.columns(begin, sizes[part]), with.part_multipliers[part]);
    begin += sizes[part];
  }
  convolve(state, weights, true, in.columns(channels, channels + 2 * keys));
  const Tensor scanned = convolved.columns(0, channels);
  device_.head_scan({.layer = state,
                     .num_groups = with.num_groups,
                     .min_step = with.min_step,
                     .max_step = with.max_step,
                     .dt_bias = weights.head_step_bias.get(),
                     .decay = weights.decay.get(),
                     .skip = weights.skip.get(),
                     .x = scanned,
                     .dt = in.columns(in.cols - with.num_heads, with.num_heads),
                     .b = convolved.columns(channels, keys),
                     .c = convolved.columns(channels + keys, keys),
                     .out = scanned});
  device_.gated_norm({.norm_first = with.norm_first,
                      .eps = with.norm_eps,
                      .weight = weights.state_norm.get(),
                      .group_size = channels / with.num_groups,
                      .x = scanned,
                      .gate = in.columns(0, channels)});
}

// What `up` makes of a short row, in `room`; the row itself where there is no such matrix.
Tensor Transformer::widened(const Linear& up, const Tensor& row, const Tensor& room) {
  if (up.weight == nullptr) return row;
  const Tensor out = room.first_rows(row.rows);
  up.apply(device_, row, out);
  return out;
}

// in_proj: q, k, v, z, beta, dt, or of the last and of z what they are made of; q, k and v are
// convolved.
void Transformer::run_delta_rule(int32_t state, const LayerWeights& weights, const Tensor& x) {
  const StateConfig& with = config_.state;
  const int64_t channels = with.num_channels();
  const int64_t keys = with.num_keys();
  const int64_t first_gate = 2 * keys + channels;
  const int64_t first_beta = first_gate + with.num_gate_inputs();
  const Tensor in = workspace_.state_in.first_rows(x.rows);
  const Tensor convolved = workspace_.convolved.first_rows(x.rows);
  weights.state_in.apply(device_, x, in);
  convolve(state, weights, true, in.columns(0, 2 * keys + channels));
  const Tensor values = convolved.columns(2 * keys, channels);
  const Tensor short_dt = in.columns(first_beta + with.num_heads, with.num_step_inputs());
  device_.delta_rule({.layer = state,
                      .num_key_heads = with.num_groups,
                      .strength = with.strength,
                      .floor = with.floor,
                      .dt_bias = weights.head_step_bias.get(),
                      .decay = weights.decay.get(),
                      .q = convolved.columns(0, keys),
                      .k = convolved.columns(keys, keys),
                      .v = values,
                      .beta = in.columns(first_beta, with.num_heads),
                      .dt = widened(weights.step, short_dt, workspace_.steps),
                      .out = values});
  device_.gated_norm(
      {.kind = with.gate,
       .norm_first = true,
       .eps = with.norm_eps,
       .weight = weights.state_norm.get(),
       .group_size = with.head_dim,
       .x = values,
       .gate = widened(weights.state_gate_up, in.columns(first_gate, with.num_gate_inputs()),
                       workspace_.state_gates)});
}

// in_proj: the gate, what is convolved.
void Transformer::run_rg_lru(int32_t state, const LayerWeights& weights, const Tensor& x) {
  const int64_t channels = config_.state.num_channels();
  const int64_t head_dim = config_.state.head_dim;
  const Tensor in = workspace_.state_in.first_rows(x.rows);
  const Tensor convolved = workspace_.convolved.first_rows(x.rows);
  const Tensor parts = workspace_.state_parts.first_rows(x.rows);
  const Tensor input_gate = parts.columns(0, channels);
  const Tensor decay_gate = parts.columns(channels, channels);
  const auto multiply_heads = [&](const HeadMatrices& heads, const Tensor& out) {
    device_.head_matmul({.heads = heads.views,
                         .x_step = head_dim,
                         .out_step = head_dim,
                         .x = convolved,
                         .out = out});
  };
  weights.state_in.apply(device_, x, in);
  convolve(state, weights, false, in.columns(channels, channels));
  multiply_heads(weights.input_gate, input_gate);
  multiply_heads(weights.decay_gate, decay_gate);
  // Beside the gate, as the activation of an MLP has it.
  device_.rg_lru({.layer = state,
                  .decay = weights.decay.get(),
                  .input_bias = weights.input_gate_bias.get(),
                  .decay_bias = weights.decay_gate_bias.get(),
                  .x = convolved,
                  .input_gate = input_gate,
                  .decay_gate = decay_gate,
                  .out = in.columns(channels, channels)});
  device_.activation({.kind = config_.activation, .gated = true, .in = in, .out = convolved});
}

// in_proj: q, k, v, the gate. The recurrence is that of Mamba 2 with steps of 1: v is its x, k its
// b, q its c.
void Transformer::run_lightning(int32_t state, const LayerWeights& weights, const Tensor& x) {
  const StateConfig& with = config_.state;
  const int64_t channels = with.num_channels();
  const int64_t keys = with.num_keys();
  const Tensor in = workspace_.state_in.first_rows(x.rows);
  const Tensor given = workspace_.convolved.first_rows(x.rows);
  const Tensor values = given.columns(2 * keys, channels);
  weights.state_in.apply(device_, x, in);
  device_.activation({.kind = config_.activation,
                      .gated = false,
                      .in = in.columns(0, 2 * keys + channels),
                      .out = given});
  device_.head_scan({.layer = state,
                     .num_groups = with.num_groups,
                     .min_step = 1.0F,
                     .max_step = 1.0F,
                     .dt_bias = &workspace_.zeros,
                     .decay = weights.decay.get(),
                     .skip = &workspace_.zeros,
                     .x = values,
                     .dt = in.columns(0, with.num_heads),  // which are held at 1, whatever is there
                     .b = given.columns(keys, keys),
                     .c = given.columns(0, keys),
                     .out = values});
  device_.gated_norm({.kind = with.gate,
                      .norm_first = true,
                      .eps = with.norm_eps,
                      .weight = weights.state_norm.get(),
                      .group_size = channels,
                      .x = values,
                      .gate = in.columns(2 * keys + channels, channels)});
}

}  // namespace tgi
