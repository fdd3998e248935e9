// See state.h: the real-gated linear recurrent unit.
//
// A thread has a channel, whose state is one number, over all tokens of its sequence in the step; a
// warp reads and writes neighbouring channels of a row.
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/state_tile.cuh"

namespace tgi::cuda {
namespace {

// Of which a channel's state has one.
constexpr int64_t kFloatsOfChannel = 4;

struct UnitParams {
  ColumnsOfRows x, input_gate, decay_gate;
  void* out;
  int64_t out_stride;
  const float* decay;
  const float* input_bias;
  const float* decay_bias;
  int32_t num_channels;
  StateStep step;
};

__device__ __forceinline__ float sigmoid(float x) {
  return 1.0F / (1.0F + expf(-x));
}

// Blocks (runs of channels, sequences).
template <typename T>
__global__ void __launch_bounds__(kStateThreads) rg_lru(const __grid_constant__ UnitParams params) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto channel = static_cast<int32_t>(blockIdx.x * kStateThreads + threadIdx.x);
  if (channel >= params.num_channels) return;
  const SequenceRows sequence = params.step.sequences[blockIdx.y];
  float* const state =
      params.step.states + sequence.slot * params.step.slot_stride + channel * kFloatsOfChannel;
  const bool begins = sequence.context_len == sequence.num_rows;
  const float decay = params.decay[channel];
  const float input_bias = params.input_bias[channel];
  const float decay_bias = params.decay_bias[channel];
  const auto at = [&](const ColumnsOfRows& from, int64_t row) {
    return to_float(*from.at<T>(row, channel));
  };
  float h = begins ? 0.0F : *state;
  for (int32_t t = 0; t < sequence.num_rows; ++t) {
    const int64_t row = sequence.first_row + t;
    const float log = decay * sigmoid(at(params.decay_gate, row) + decay_bias);
    float input = at(params.x, row) * sigmoid(at(params.input_gate, row) + input_bias);
    if (t > 0 || !begins) input *= sqrtf(-expm1f(2.0F * log));
    h = fmaf(expf(log), h, input);
    static_cast<T*>(params.out)[row * params.out_stride + channel] = from_float<T>(h);
  }
  if (sequence.slot < params.step.num_slots) *state = h;
}

}  // namespace

void launch_rg_lru(cudaStream_t stream, const RgLruArgs& args, const StateStep& step) {
  if (step.num_rows == 0) return;
  const UnitParams params = {.x = columns_of(args.x),
                             .input_gate = columns_of(args.input_gate),
                             .decay_gate = columns_of(args.decay_gate),
                             .out = args.out.data,
                             .out_stride = args.out.stride,
                             .decay = args.decay->as<const float>(),
                             .input_bias = args.input_bias->as<const float>(),
                             .decay_bias = args.decay_bias->as<const float>(),
                             .num_channels = static_cast<int32_t>(args.x.cols),
                             .step = step};
  const int32_t tiles = (params.num_channels + kStateThreads - 1) / kStateThreads;
  const LaunchShape shape = {
      .grid = dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(step.num_sequences)),
      .block = dim3(kStateThreads),
      .shared_bytes = 0,
      .overlaps_previous = true};
  with_element(args.x.dtype,
               [&](auto element) { launch(stream, shape, rg_lru<decltype(element)>, params); });
}

}  // namespace tgi::cuda
