// See state.h: the convolution over time. Each output is computed by itself, from rows of this step
// and what is kept of the step before: which it is follows from the rows' slots.
//
// Where every sequence has one row, the thread that reads what is kept of a channel also writes
// what is to be kept. Else rows of one sequence are computed by several blocks, none of which may
// overwrite what another one reads: then a second kernel does it.
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/row_launch.h"
#include "cuda/kernels/state.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kVector = 4;      // channels that a thread moves at once, where rows allow it
constexpr int kRowsAtOnce = 8;  // of a block: they read the same rows before them

struct ConvParams {
  const void* x;
  const void* x_gate;    // (optional)
  const void* out_gate;  // (optional)
  void* out;
  int64_t x_stride, x_gate_stride, out_gate_stride, out_stride;
  const float* weight;  // (kernel, channels)
  const float* bias;    // (optional)
  int32_t kernel;
  int32_t channels;
  bool silu;
  bool keeps;  // every sequence has one row
  int32_t rows_of_block;
  StateStep step;
};

// What goes into the convolution: x, gated.
template <typename T, int N>
__device__ __forceinline__ Vector<float, N> input_at(const ConvParams& params,
                                                     int64_t row,
                                                     int32_t channel) {
  const auto x = load<T, N>(static_cast<const T*>(params.x) + row * params.x_stride + channel);
  Vector<float, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out.at[i] = to_float(x.at[i]);
  if (params.x_gate != nullptr) {
    const auto gate =
        load<T, N>(static_cast<const T*>(params.x_gate) + row * params.x_gate_stride + channel);
#pragma unroll
    for (int i = 0; i < N; ++i) out.at[i] *= to_float(gate.at[i]);
  }
  return out;
}

// How many rows before this one are of its sequence and in this step; no more than are asked for.
__device__ __forceinline__ int32_t rows_before(const StateStep& step,
                                               int32_t row,
                                               const TokenRow& token,
                                               int32_t most) {
  int32_t count = 0;
  const int32_t end = min(min(most, row), token.context_index);
  while (count < end && step.rows[row - count - 1].slot == token.slot) ++count;
  return count;
}

template <typename T, int N>
__device__ __forceinline__ void convolve_row(const ConvParams& params,
                                             int32_t row,
                                             int32_t channel) {
  const StateStep& step = params.step;
  const TokenRow token = step.rows[row];
  const int32_t num_kept = params.kernel - 1;
  const int32_t num_here = rows_before(step, row, token, num_kept);
  float* const kept = step.states + token.slot * step.slot_stride + channel;
  const bool writes = params.keeps && token.slot < step.num_slots;
  Vector<float, N> sum = {};
  if (params.bias != nullptr) sum = load<float, N>(params.bias + channel);
  for (int32_t j = 0; j < params.kernel; ++j) {
    const int32_t behind = num_kept - j;
    Vector<float, N> x = {};
    if (behind <= num_here) {
      x = input_at<T, N>(params, row - behind, channel);
    } else if (behind <= token.context_index) {
      x = load<float, N>(kept + int64_t{j + num_here} * params.channels);
    }
    const auto weight = load<float, N>(params.weight + int64_t{j} * params.channels + channel);
#pragma unroll
    for (int i = 0; i < N; ++i) sum.at[i] = fmaf(weight.at[i], x.at[i], sum.at[i]);
    // Its place was read by the turn before.
    if (writes && j > 0) store(kept + int64_t{j - 1} * params.channels, x);
  }
  if (params.silu) {
#pragma unroll
    for (int i = 0; i < N; ++i) sum.at[i] /= 1.0F + expf(-sum.at[i]);
  }
  if (params.out_gate != nullptr) {
    const auto gate =
        load<T, N>(static_cast<const T*>(params.out_gate) + row * params.out_gate_stride + channel);
#pragma unroll
    for (int i = 0; i < N; ++i) sum.at[i] *= to_float(gate.at[i]);
  }
  Vector<T, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out.at[i] = from_float<T>(sum.at[i]);
  store(static_cast<T*>(params.out) + row * params.out_stride + channel, out);
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads) causal_conv(const __grid_constant__ ConvParams params) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto channel = static_cast<int32_t>(blockIdx.y * kThreads + threadIdx.x) * N;
  if (channel >= params.channels) return;
  const auto first = static_cast<int32_t>(blockIdx.x) * params.rows_of_block;
  const int32_t end = min(first + params.rows_of_block, params.step.num_rows);
  for (int32_t row = first; row < end; ++row) convolve_row<T, N>(params, row, channel);
}

// What the next step's first tokens will see, of sequence blockIdx.x.
template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    keep_conv_inputs(const __grid_constant__ ConvParams params) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto channel = static_cast<int32_t>(blockIdx.y * kThreads + threadIdx.x) * N;
  if (channel >= params.channels) return;
  const StateStep& step = params.step;
  const SequenceRows sequence = step.sequences[blockIdx.x];
  if (sequence.slot >= step.num_slots) return;
  float* const kept = step.states + sequence.slot * step.slot_stride + channel;
  const int32_t num_kept = params.kernel - 1;
  for (int32_t i = 0; i < num_kept; ++i) {
    const int32_t behind = num_kept - 1 - i;  // the sequence's last row
    Vector<float, N> x = {};
    if (behind < sequence.num_rows) {
      x = input_at<T, N>(params, sequence.first_row + sequence.num_rows - 1 - behind, channel);
    } else if (behind < sequence.context_len) {
      x = load<float, N>(kept + int64_t{i + sequence.num_rows} * params.channels);
    }
    store(kept + int64_t{i} * params.channels, x);
  }
}

template <typename T, int N>
void launch_conv(cudaStream_t stream, const ConvParams& params) {
  const auto blocks = [&](int64_t count) {
    LaunchShape shape = elementwise(count, params.channels, N);
    shape.block = dim3(kThreads);
    return shape;
  };
  const StateStep& step = params.step;
  const int64_t rows_of_block = params.rows_of_block;
  launch(stream, blocks((step.num_rows + rows_of_block - 1) / rows_of_block), causal_conv<T, N>,
         params);
  if (params.keeps || params.kernel == 1) return;
  launch(stream, blocks(step.num_sequences), keep_conv_inputs<T, N>, params);
}

}  // namespace

void launch_causal_conv(cudaStream_t stream, const ConvArgs& args, const StateStep& step) {
  if (step.num_rows == 0) return;
  const bool keeps = step.num_sequences == step.num_rows;
  const ConvParams params = {.x = args.x.data,
                             .x_gate = args.x_gate.data,
                             .out_gate = args.out_gate.data,
                             .out = args.out.data,
                             .x_stride = args.x.stride,
                             .x_gate_stride = args.x_gate.stride,
                             .out_gate_stride = args.out_gate.stride,
                             .out_stride = args.out.stride,
                             .weight = args.weight->as<const float>(),
                             .bias = args.bias == nullptr ? nullptr : args.bias->as<const float>(),
                             .kernel = static_cast<int32_t>(args.weight->rows),
                             .channels = static_cast<int32_t>(args.x.cols),
                             .silu = args.silu,
                             .keeps = keeps,
                             .rows_of_block = keeps ? 1 : kRowsAtOnce,
                             .step = step};
  const bool wide =
      is_wide(args.x) && is_wide(args.x_gate) && is_wide(args.out_gate) && is_wide(args.out);
  with_element(args.x.dtype, [&](auto element) {
    using T = decltype(element);
    wide ? launch_conv<T, kVector>(stream, params) : launch_conv<T, 1>(stream, params);
  });
}

}  // namespace tgi::cuda
