// See state.h: the scans of Mamba 1 and 2.
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/state_tile.cuh"

namespace tgi::cuda {
namespace {

struct ScanParams {
  ColumnsOfRows x, dt, b, c;
  void* out;
  int64_t out_stride;
  const float* decay;    // (state_size, channels), or (heads)
  const float* skip;     // (channels), or (heads)
  const float* dt_bias;  // (heads), of Mamba 2
  float min_step, max_step;
  int32_t head_dim;  // of Mamba 1, whose channels are one head: all of them
  int32_t state_size;
  int32_t heads_per_group;
  StateStep step;
};

template <typename T>
__device__ __forceinline__ T* out_at(const ScanParams& params, const StatePlace& place) {
  return static_cast<T*>(params.out) + int64_t{place.head} * params.head_dim + place.first_channel +
         place.channel;
}

// Inputs of a chunk of Mamba 1, which has a step for each channel.
template <typename T, typename Shape>
struct ChannelScanInputs {
  struct Stage {
    Vector<float, 4> b[Shape::kChunk][Shape::kNumbers / 4];
    Vector<float, 4> c[Shape::kChunk][Shape::kNumbers / 4];
    float x[Shape::kChunk][Shape::kChannels];
    float step[Shape::kChunk][Shape::kChannels];
  };
  const ScanParams& params;
  const StatePlace& place;
  Stage* stages;  // (2)
  NumbersOnTheWay<T, Shape> b, c;
  ChannelsOnTheWay<T, Shape> x, dt;

  __device__ __forceinline__ ChannelScanInputs(const ScanParams& of,
                                               const StatePlace& at,
                                               Stage* both)
      : params(of), place(at), stages(both) {}

  __device__ __forceinline__ void load(int64_t row, int count) {
    b.load(params.b, row, 0, count, params.state_size);
    c.load(params.c, row, 0, count, params.state_size);
    x.load(params.x, row, place.first_channel, count, place.num_channels);
    dt.load(params.dt, row, place.first_channel, count, place.num_channels);
  }
  __device__ __forceinline__ void store(int stage) {
    b.store(stages[stage].b);
    c.store(stages[stage].c);
    x.store(stages[stage].x);
    dt.store(stages[stage].step, [](float raw) { return softplus(raw); });
  }
};

template <typename T, typename Shape>
__global__ void __launch_bounds__(kStateThreads)
    channel_scan(const __grid_constant__ ScanParams params) {
  using Inputs = ChannelScanInputs<T, Shape>;
  __shared__ typename Inputs::Stage stages[2];
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto place = state_place<Shape>(params.step, params.head_dim);
  StateNumbers<Shape> h;
  h.read(params.step, place, params.head_dim, params.state_size);
  // In units of log2; of numbers past the last one, which stay zero, too.
  float decay[4 * Shape::kVectors];
  const int32_t channel = place.first_channel + place.channel;
#pragma unroll
  for (int i = 0; i < 4 * Shape::kVectors; ++i) {
    const int s = StateNumbers<Shape>::first_number(place.lane, i / 4) + i % 4;
    const bool valid = s < params.state_size && place.is_there();
    decay[i] = valid ? params.decay[int64_t{s} * params.head_dim + channel] * kExpToExp2 : 0.0F;
  }
  const float skip = place.is_there() ? params.skip[channel] : 0.0F;
  Inputs inputs(params, place, stages);
  for_state_tokens<Shape>(place.sequence, inputs, [&](int stage, int t, int64_t row) {
    const typename Inputs::Stage& in = stages[stage];
    const float x = in.x[t][place.channel];
    const float step = in.step[t][place.channel];
    const float input = step * x;
    float sums[4] = {};
#pragma unroll
    for (int i = 0; i < Shape::kVectors; ++i) {
      const Vector<float, 4> b = in.b[t][i * Shape::kLanes + place.lane];
      const Vector<float, 4> c = in.c[t][i * Shape::kLanes + place.lane];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float& number = h.at[4 * i + j];
        number = fmaf(fast_exp2(step * decay[4 * i + j]), number, input * b.at[j]);
        sums[j] = fmaf(c.at[j], number, sums[j]);
      }
    }
    const float sum = channel_sum<Shape>(sum_of_four(sums));
    if (place.lane == 0 && place.is_there()) {
      out_at<T>(params, place)[row * params.out_stride] = from_float<T>(fmaf(skip, x, sum));
    }
  });
  h.write(params.step, place, params.head_dim, params.state_size);
}

// Inputs of a chunk of Mamba 2: a step for all channels of a head, and how much of the state it
// leaves.
template <typename T, typename Shape>
struct HeadScanInputs {
  struct Stage {
    Vector<float, 4> b[Shape::kChunk][Shape::kNumbers / 4];
    Vector<float, 4> c[Shape::kChunk][Shape::kNumbers / 4];
    float x[Shape::kChunk][Shape::kChannels];
    float step[Shape::kChunk];
    float left[Shape::kChunk];
  };
  const ScanParams& params;
  const StatePlace& place;
  Stage* stages;  // (2)
  NumbersOnTheWay<T, Shape> b, c;
  ChannelsOnTheWay<T, Shape> x;
  T dt;

  __device__ __forceinline__ HeadScanInputs(const ScanParams& of, const StatePlace& at, Stage* both)
      : params(of), place(at), stages(both) {}

  __device__ __forceinline__ void load(int64_t row, int count) {
    const int64_t group = int64_t{place.head / params.heads_per_group} * params.state_size;
    b.load(params.b, row, group, count, params.state_size);
    c.load(params.c, row, group, count, params.state_size);
    x.load(params.x, row, int64_t{place.head} * params.head_dim + place.first_channel, count,
           place.num_channels);
    const auto token = static_cast<int>(threadIdx.x);
    dt = token < count ? *params.dt.at<T>(row + token, place.head) : from_float<T>(0.0F);
  }
  __device__ __forceinline__ void store(int stage) {
    Stage& to = stages[stage];
    b.store(to.b);
    c.store(to.c);
    x.store(to.x);
    const auto token = static_cast<int>(threadIdx.x);
    if (token >= Shape::kChunk) return;
    // Compared so that what is not a number stays so.
    float step = softplus(to_float(dt) + params.dt_bias[place.head]);
    if (step < params.min_step) step = params.min_step;
    if (step > params.max_step) step = params.max_step;
    to.step[token] = step;
    to.left[token] = fast_exp2(step * params.decay[place.head] * kExpToExp2);
  }
};

template <typename T, typename Shape>
__global__ void __launch_bounds__(kStateThreads)
    head_scan(const __grid_constant__ ScanParams params) {
  using Inputs = HeadScanInputs<T, Shape>;
  __shared__ typename Inputs::Stage stages[2];
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto place = state_place<Shape>(params.step, params.head_dim);
  StateNumbers<Shape> h;
  h.read(params.step, place, params.head_dim, params.state_size);
  const float skip = params.skip[place.head];
  Inputs inputs(params, place, stages);
  for_state_tokens<Shape>(place.sequence, inputs, [&](int stage, int t, int64_t row) {
    const typename Inputs::Stage& in = stages[stage];
    const float x = in.x[t][place.channel];
    const float input = in.step[t] * x;
    const float left = in.left[t];
    float sums[4] = {};
#pragma unroll
    for (int i = 0; i < Shape::kVectors; ++i) {
      const Vector<float, 4> b = in.b[t][i * Shape::kLanes + place.lane];
      const Vector<float, 4> c = in.c[t][i * Shape::kLanes + place.lane];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float& number = h.at[4 * i + j];
        number = fmaf(left, number, input * b.at[j]);
        sums[j] = fmaf(c.at[j], number, sums[j]);
      }
    }
    const float sum = channel_sum<Shape>(sum_of_four(sums));
    if (place.lane == 0 && place.is_there()) {
      out_at<T>(params, place)[row * params.out_stride] = from_float<T>(fmaf(skip, x, sum));
    }
  });
  h.write(params.step, place, params.head_dim, params.state_size);
}

}  // namespace

void launch_channel_scan(cudaStream_t stream, const ChannelScanArgs& args, const StateStep& step) {
  if (step.num_rows == 0) return;
  const ScanParams params = {.x = columns_of(args.x),
                             .dt = columns_of(args.dt),
                             .b = columns_of(args.b),
                             .c = columns_of(args.c),
                             .out = args.out.data,
                             .out_stride = args.out.stride,
                             .decay = args.decay->as<const float>(),
                             .skip = args.skip->as<const float>(),
                             .dt_bias = nullptr,
                             .min_step = 0.0F,
                             .max_step = 0.0F,
                             .head_dim = static_cast<int32_t>(args.x.cols),
                             .state_size = static_cast<int32_t>(args.decay->rows),
                             .heads_per_group = 1,
                             .step = step};
  with_element(args.x.dtype, [&](auto element) {
    with_state_shape(params.state_size, [&](auto shape) {
      using Shape = decltype(shape);
      launch(stream, state_launch<Shape>(1, params.head_dim, step.num_sequences),
             channel_scan<decltype(element), Shape>, params);
    });
  });
}

void launch_head_scan(cudaStream_t stream,
                      const HeadScanArgs& args,
                      const StateLayout& layout,
                      const StateStep& step) {
  if (step.num_rows == 0) return;
  const ScanParams params = {.x = columns_of(args.x),
                             .dt = columns_of(args.dt),
                             .b = columns_of(args.b),
                             .c = columns_of(args.c),
                             .out = args.out.data,
                             .out_stride = args.out.stride,
                             .decay = args.decay->as<const float>(),
                             .skip = args.skip->as<const float>(),
                             .dt_bias = args.dt_bias->as<const float>(),
                             .min_step = args.min_step,
                             .max_step = args.max_step,
                             .head_dim = layout.head_dim,
                             .state_size = layout.state_size,
                             .heads_per_group = layout.num_heads / args.num_groups,
                             .step = step};
  with_element(args.x.dtype, [&](auto element) {
    with_state_shape(params.state_size, [&](auto shape) {
      using Shape = decltype(shape);
      launch(stream, state_launch<Shape>(layout.num_heads, params.head_dim, step.num_sequences),
             head_scan<decltype(element), Shape>, params);
    });
  });
}

}  // namespace tgi::cuda
