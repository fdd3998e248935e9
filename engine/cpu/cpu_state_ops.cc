// The ops of CpuDevice for layers that carry a state. A task is a run of channels of one sequence,
// over all its tokens in the step.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/cpu/cpu_device.h"
#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/cpu_device_rows.h"

namespace tgi {
namespace {

constexpr int64_t kGateRun = 256;  // copies of a gate that stand beside columns at once

}  // namespace

float* CpuDevice::conv_state(int32_t layer, size_t sequence) {
  const StateLayout& layout = slot_layout_->state;
  const int64_t place = int64_t{layer} * slot_layout_->num_slots + batch_->slots[sequence];
  return static_cast<float*>(state_.data()) + place * state_numbers(layout);
}

float* CpuDevice::recurrent_state(int32_t layer, size_t sequence) {
  return conv_state(layer, sequence) + conv_state_size(slot_layout_->state);
}

bool CpuDevice::begins(size_t sequence) const {
  return token_places_[static_cast<size_t>(batch_->cu_seqlens_q[sequence])].context_index == 0;
}

void CpuDevice::causal_conv(const ConvArgs& args) {
  const int64_t cols = args.x.cols;
  const auto kernel = static_cast<int32_t>(args.weight->rows);
  const auto num_sequences = static_cast<size_t>(batch_->num_sequences());
  const auto kept = static_cast<size_t>(conv_state_size(slot_layout_->state));
  for (size_t i = 0; i < num_sequences; ++i) {
    if (begins(i)) std::fill_n(conv_state(args.layer, i), kept, 0.0F);
  }
  if (args.x_gate.data != nullptr) {
    for_rows(args.x.rows, cols, [&](int64_t row) {
      kernels_.state.multiply(mutable_row_of(args.x, row), row_of(args.x_gate, row), cols);
    });
  }
  for_rows(args.x.rows, cols * kernel * 2, [&](int64_t row) {
    const auto sequence = static_cast<size_t>(token_places_[static_cast<size_t>(row)].sequence);
    const int64_t begin = batch_->cu_seqlens_q[sequence];
    const float* const before = conv_state(args.layer, sequence);
    ConvRow conv{.kernel = kernel,
                 .weight = args.weight->as<const float>(),
                 .bias = data_or_null(args.bias),
                 .out_gate = args.out_gate.data == nullptr ? nullptr : row_of(args.out_gate, row),
                 .silu = args.silu,
                 .out = mutable_row_of(args.out, row),
                 .cols = cols};
    for (int32_t j = 0; j < kernel; ++j) {
      const int64_t from = row - begin + 1 - kernel + j;  // of the sequence's rows in this step
      conv.x[static_cast<size_t>(j)] =
          from >= 0 ? row_of(args.x, begin + from) : before + (from + kernel - 1) * cols;
    }
    kernels_.state.conv(conv);
  });
  for (size_t i = 0; i < num_sequences; ++i) keep_conv_rows(args, i);
}

// What the next step's first tokens will see.
void CpuDevice::keep_conv_rows(const ConvArgs& args, size_t sequence) {
  const int64_t begin = batch_->cu_seqlens_q[sequence];
  const int64_t num_rows = batch_->cu_seqlens_q[sequence + 1] - begin;
  const int64_t num_kept = args.weight->rows - 1;
  const int64_t cols = args.x.cols;
  float* const state = conv_state(args.layer, sequence);
  for (int64_t i = 0; i < num_kept; ++i) {
    const int64_t from = num_rows - num_kept + i;
    const float* row = from >= 0 ? row_of(args.x, begin + from) : state + (from + num_kept) * cols;
    std::memmove(state + i * cols, row, static_cast<size_t>(cols) * sizeof(float));
  }
}

template <typename Run>
void CpuDevice::for_state_blocks(int32_t layer, Run run) {
  const StateLayout& layout = slot_layout_->state;
  const int64_t blocks_per_head = num_lane_blocks(layout);
  const int64_t blocks = layout.num_heads * blocks_per_head;
  const int64_t block_size = int64_t{kStateLanes} * layout.state_size;
  pool_.parallel_for(batch_->num_sequences() * blocks, [&](int64_t task, int /*thread*/) {
    const auto sequence = static_cast<size_t>(task / blocks);
    const int64_t block = task % blocks;
    float* const state = recurrent_state(layer, sequence) + block * block_size;
    if (begins(sequence)) std::fill_n(state, block_size, 0.0F);
    run(sequence, block / blocks_per_head, block % blocks_per_head * kStateLanes, state);
  });
}

void CpuDevice::channel_scan(const ChannelScanArgs& args) {
  for_rows(args.dt.rows, args.dt.cols * 8, [&](int64_t row) {
    kernels_.state.softplus({.x = mutable_row_of(args.dt, row),
                             .min = 0.0F,
                             .max = std::numeric_limits<float>::infinity(),
                             .cols = args.dt.cols});
  });
  for_state_blocks(args.layer, [&](size_t sequence, int64_t, int64_t channel, float* state) {
    const int64_t row = batch_->cu_seqlens_q[sequence];
    kernels_.state.scan_channels(
        {.state = state,
         .num_tokens = batch_->cu_seqlens_q[sequence + 1] - row,
         .num_channels = std::min<int64_t>(kStateLanes, args.x.cols - channel),
         .state_size = args.decay->rows,
         .decay = args.decay->as<const float>() + channel,
         .decay_stride = args.decay->cols,
         .skip = args.skip->as<const float>() + channel,
         .x = row_of(args.x, row) + channel,
         .x_stride = args.x.stride,
         .step = row_of(args.dt, row) + channel,
         .step_stride = args.dt.stride,
         .b = row_of(args.b, row),
         .b_stride = args.b.stride,
         .c = row_of(args.c, row),
         .c_stride = args.c.stride,
         .out = mutable_row_of(args.out, row) + channel,
         .out_stride = args.out.stride});
  });
}

void CpuDevice::head_scan(const HeadScanArgs& args) {
  const StateLayout& layout = slot_layout_->state;
  const int64_t heads_per_group = layout.num_heads / args.num_groups;
  for_rows(args.dt.rows, args.dt.cols * 8, [&](int64_t row) {
    kernels_.state.softplus({.x = mutable_row_of(args.dt, row),
                             .bias = data_or_null(args.dt_bias),
                             .min = args.min_step,
                             .max = args.max_step,
                             .cols = args.dt.cols});
  });
  for_state_blocks(args.layer, [&](size_t sequence, int64_t head, int64_t channel, float* state) {
    const int64_t row = batch_->cu_seqlens_q[sequence];
    const int64_t column = head * layout.head_dim + channel;
    const int64_t group = head / heads_per_group * layout.state_size;
    kernels_.state.scan_head(
        {.state = state,
         .num_tokens = batch_->cu_seqlens_q[sequence + 1] - row,
         .num_channels = std::min<int64_t>(kStateLanes, layout.head_dim - channel),
         .state_size = layout.state_size,
         .decay = args.decay->as<const float>() + head,
         .skip = args.skip->as<const float>() + head,
         .x = row_of(args.x, row) + column,
         .x_stride = args.x.stride,
         .step = row_of(args.dt, row) + head,
         .step_stride = args.dt.stride,
         .b = row_of(args.b, row) + group,
         .b_stride = args.b.stride,
         .c = row_of(args.c, row) + group,
         .c_stride = args.c.stride,
         .out = mutable_row_of(args.out, row) + column,
         .out_stride = args.out.stride});
  });
}

void CpuDevice::keep_of_row(const DeltaRuleArgs& args, float* dt) {
  const StateLayout& layout = slot_layout_->state;
  const auto* const bias = args.dt_bias->as<const float>();
  const auto* const decay = args.decay->as<const float>();
  if (!layout.decays_numbers) {
    return kernels_.state.kept(
        {.x = dt, .bias = bias, .decay = decay, .floor = args.floor, .cols = args.dt.cols});
  }
  for (int64_t head = 0; head < layout.num_heads; ++head) {
    const int64_t first = head * layout.state_size;
    kernels_.state.kept({.x = dt + first,
                         .bias = bias + first,
                         .decay = decay + head,
                         .shares_decay = true,
                         .floor = args.floor,
                         .cols = layout.state_size});
  }
}

void CpuDevice::delta_rule(const DeltaRuleArgs& args) {
  const StateLayout& layout = slot_layout_->state;
  const auto run = layout.decays_numbers ? kernels_.state.delta_of_numbers : kernels_.state.delta;
  const int64_t key_dim = layout.state_size;
  const int64_t heads_per_key = layout.num_heads / args.num_key_heads;
  const float q_scale = 1.0F / std::sqrt(static_cast<float>(key_dim));
  for_rows(args.dt.rows, args.dt.cols * 16 + args.q.cols * 4, [&](int64_t row) {
    keep_of_row(args, mutable_row_of(args.dt, row));
    kernels_.state.sigmoid(mutable_row_of(args.beta, row), args.beta.cols);
    for (int64_t head = 0; head < args.num_key_heads; ++head) {
      const int64_t column = head * key_dim;
      kernels_.state.divide_by_length(mutable_row_of(args.q, row) + column, key_dim, q_scale);
      kernels_.state.divide_by_length(mutable_row_of(args.k, row) + column, key_dim, 1.0F);
    }
  });
  for_state_blocks(args.layer, [&](size_t sequence, int64_t head, int64_t channel, float* state) {
    const int64_t row = batch_->cu_seqlens_q[sequence];
    const int64_t column = head * layout.head_dim + channel;
    const int64_t key = head / heads_per_key * key_dim;
    run({.state = state,
         .num_tokens = batch_->cu_seqlens_q[sequence + 1] - row,
         .num_channels = std::min<int64_t>(kStateLanes, layout.head_dim - channel),
         .state_size = key_dim,
         .strength = args.strength,
         .q = row_of(args.q, row) + key,
         .q_stride = args.q.stride,
         .k = row_of(args.k, row) + key,
         .k_stride = args.k.stride,
         .v = row_of(args.v, row) + column,
         .v_stride = args.v.stride,
         .beta = row_of(args.beta, row) + head,
         .beta_stride = args.beta.stride,
         .kept = row_of(args.dt, row) + head * (layout.decays_numbers ? key_dim : 1),
         .kept_stride = args.dt.stride,
         .out = mutable_row_of(args.out, row) + column,
         .out_stride = args.out.stride});
  });
}

void CpuDevice::rg_lru(const RgLruArgs& args) {
  const StateLayout& layout = slot_layout_->state;
  for_state_blocks(args.layer, [&](size_t sequence, int64_t head, int64_t channel, float* state) {
    const int64_t row = batch_->cu_seqlens_q[sequence];
    const int64_t column = head * layout.head_dim + channel;
    kernels_.state.rg_lru(
        {.state = state,
         .begins = begins(sequence),
         .num_tokens = batch_->cu_seqlens_q[sequence + 1] - row,
         .num_channels = std::min<int64_t>(kStateLanes, layout.head_dim - channel),
         .decay = args.decay->as<const float>() + column,
         .input_bias = args.input_bias->as<const float>() + column,
         .decay_bias = args.decay_bias->as<const float>() + column,
         .x = row_of(args.x, row) + column,
         .x_stride = args.x.stride,
         .input_gate = row_of(args.input_gate, row) + column,
         .input_gate_stride = args.input_gate.stride,
         .decay_gate = row_of(args.decay_gate, row) + column,
         .decay_gate_stride = args.decay_gate.stride,
         .out = mutable_row_of(args.out, row) + column,
         .out_stride = args.out.stride});
  });
}

void CpuDevice::gated_norm(const GatedNormArgs& args) {
  const auto kernel = kernels_.state.gate[static_cast<size_t>(args.kind)];
  const int64_t span = args.x.cols / args.gate.cols;
  // A gate of several columns stands beside each of them.
  const auto gate = [&](float* x, const float* gates) {
    if (span == 1) return kernel(x, gates, args.x.cols);
    std::array<float, kGateRun> same{};
    const int64_t run = std::min(span, kGateRun);
    for (int64_t i = 0; i < args.x.cols; i += span) {
      std::fill_n(same.begin(), run, gates[i / span]);
      for (int64_t j = 0; j < span; j += run)
        kernel(x + i + j, same.data(), std::min(run, span - j));
    }
  };
  const auto norm = [&](float* row) {
    if (args.weight == nullptr) return;
    const bool is_shared = args.weight->cols == args.group_size;
    for (int64_t i = 0; i < args.x.cols; i += args.group_size) {
      kernels_.rms_norm({.eps = args.eps,
                         .weight = args.weight->as<const float>() + (is_shared ? 0 : i),
                         .x = row + i,
                         .out = row + i,
                         .cols = args.group_size});
    }
  };
  for_rows(args.x.rows, args.x.cols * 8, [&](int64_t row) {
    float* const x = mutable_row_of(args.x, row);
    if (args.norm_first) norm(x);
    gate(x, row_of(args.gate, row));
    if (!args.norm_first) norm(x);
  });
}

}  // namespace tgi
