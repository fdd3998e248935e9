// See state.h: the gated delta rule.
//
// q and k stay as they come; their lengths are divided out of the sums that they are in. With
// h' = exp(..) * h what the state knows of k is k . h', and what comes out
// q . (h' + k * change) = q . h' + (q . k) * change: so both sums over a channel's numbers are
// taken at once, and a token waits for one round of exchanges instead of two.
#include <type_traits>

#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/state_tile.cuh"

namespace tgi::cuda {
namespace {

struct DeltaParams {
  ColumnsOfRows q, k, v, beta, dt;
  void* out;
  int64_t out_stride;
  float strength;
  float floor;
  const float* decay;    // (heads)
  const float* dt_bias;  // (heads), or (heads * state_size)
  int32_t head_dim;
  int32_t state_size;
  int32_t heads_per_key;
  StateStep step;
};

// Of the state, after a token.
__device__ __forceinline__ float kept_of(float raw, float decay, float floor) {
  const float log = floor < 0.0F ? floor / (1.0F + expf(decay * raw)) : decay * softplus(raw);
  return fast_exp2(log * kExpToExp2);
}

// kOfNumbers: each number of a head decays by itself; else all as one.
template <typename T, typename Shape, bool kOfNumbers>
struct DeltaInputs {
  struct Stage {
    Vector<float, 4> q[Shape::kChunk][Shape::kNumbers / 4];
    Vector<float, 4> k[Shape::kChunk][Shape::kNumbers / 4];
    float v[Shape::kChunk][Shape::kChannels];
    float left[kOfNumbers ? 1 : Shape::kChunk];  // of the state
    Vector<float, 4> number_left[kOfNumbers ? Shape::kChunk : 1]
                                [kOfNumbers ? Shape::kNumbers / 4 : 1];
    float strength[Shape::kChunk];  // of the change
    float q_scale[Shape::kChunk];   // 1 / (length * sqrt(state_size))
    float k_scale[Shape::kChunk];   // 1 / length
    float q_times_k[Shape::kChunk];
  };
  const DeltaParams& params;
  const StatePlace& place;
  Stage* stages;  // (2)
  NumbersOnTheWay<T, Shape> q, k;
  ChannelsOnTheWay<T, Shape> v;
  NumbersOnTheWay<T, Shape> number_dt;  // where each decays by itself
  T beta, dt;

  __device__ __forceinline__ DeltaInputs(const DeltaParams& of, const StatePlace& at, Stage* both)
      : params(of), place(at), stages(both) {}

  __device__ __forceinline__ void load(int64_t row, int count) {
    const int64_t key = int64_t{place.head / params.heads_per_key} * params.state_size;
    q.load(params.q, row, key, count, params.state_size);
    k.load(params.k, row, key, count, params.state_size);
    v.load(params.v, row, int64_t{place.head} * params.head_dim + place.first_channel, count,
           place.num_channels);
    const auto token = static_cast<int>(threadIdx.x);
    const bool valid = token < count;
    beta = valid ? *params.beta.at<T>(row + token, place.head) : from_float<T>(0.0F);
    if constexpr (kOfNumbers) {
      number_dt.load(params.dt, row, int64_t{place.head} * params.state_size, count,
                     params.state_size);
    } else {
      dt = valid ? *params.dt.at<T>(row + token, place.head) : from_float<T>(0.0F);
    }
  }
  __device__ __forceinline__ void store(int stage) {
    Stage& to = stages[stage];
    q.store(to.q);
    k.store(to.k);
    v.store(to.v);
    store_products(to);
    const float decay = params.decay[place.head];
    if constexpr (kOfNumbers) {
      const float* const bias = params.dt_bias + int64_t{place.head} * params.state_size;
      number_dt.store(to.number_left, [&](int number, float raw) {
        if (number >= params.state_size) return 0.0F;
        return kept_of(raw + bias[number], decay, params.floor);
      });
    }
    const auto token = static_cast<int>(threadIdx.x);
    if (token >= Shape::kChunk) return;
    if constexpr (!kOfNumbers) {
      const float raw = to_float(dt) + params.dt_bias[place.head];
      to.left[token] = kept_of(raw, decay, params.floor);
    }
    to.strength[token] = params.strength / (1.0F + expf(-to_float(beta)));
  }

 private:
  // A warp has whole tokens.
  __device__ __forceinline__ void store_products(Stage& to) const {
    const float inverse_root = 1.0F / sqrtf(static_cast<float>(params.state_size));
#pragma unroll
    for (int i = 0; i < q.kTokens; ++i) {
      float q_squares = 0.0F;
      float k_squares = 0.0F;
      float products = 0.0F;
#pragma unroll
      for (int j = 0; j < q.kPasses; ++j) {
        const float a = to_float(q.values[i][j]);
        const float b = to_float(k.values[i][j]);
        q_squares = fmaf(a, a, q_squares);
        k_squares = fmaf(b, b, k_squares);
        products = fmaf(a, b, products);
      }
      const float q_length = sqrtf(warp_sum(q_squares) + kDeltaNormEps);
      const float k_length = sqrtf(warp_sum(k_squares) + kDeltaNormEps);
      products = warp_sum(products);
      if (threadIdx.x % 32 != 0) continue;
      const int token = q.token(i);
      to.q_scale[token] = inverse_root / q_length;
      to.k_scale[token] = 1.0F / k_length;
      to.q_times_k[token] = products;
    }
  }
};

template <typename T, typename Shape, bool kOfNumbers>
__global__ void __launch_bounds__(kStateThreads)
    delta_rule(const __grid_constant__ DeltaParams params) {
  using Inputs = DeltaInputs<T, Shape, kOfNumbers>;
  __shared__ typename Inputs::Stage stages[2];
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto place = state_place<Shape>(params.step, params.head_dim);
  StateNumbers<Shape> h;
  h.read(params.step, place, params.head_dim, params.state_size);
  T* const out = static_cast<T*>(params.out) + int64_t{place.head} * params.head_dim +
                 place.first_channel + place.channel;
  Inputs inputs(params, place, stages);
  for_state_tokens<Shape>(place.sequence, inputs, [&](int stage, int t, int64_t row) {
    const typename Inputs::Stage& in = stages[stage];
    Vector<float, 4> k[Shape::kVectors];
    float known[4] = {};
    float asked[4] = {};
#pragma unroll
    for (int i = 0; i < Shape::kVectors; ++i) {
      k[i] = in.k[t][i * Shape::kLanes + place.lane];
      const Vector<float, 4> q = in.q[t][i * Shape::kLanes + place.lane];
      Vector<float, 4> left;
      if constexpr (kOfNumbers) {
        left = in.number_left[t][i * Shape::kLanes + place.lane];
      } else {
        left = {{in.left[t], in.left[t], in.left[t], in.left[t]}};
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float& number = h.at[4 * i + j];
        number *= left.at[j];
        known[j] = fmaf(k[i].at[j], number, known[j]);
        asked[j] = fmaf(q.at[j], number, asked[j]);
      }
    }
    const float k_scale = in.k_scale[t];
    const float known_sum = channel_sum<Shape>(sum_of_four(known));
    const float asked_sum = channel_sum<Shape>(sum_of_four(asked));
    const float change =
        k_scale * (in.strength[t] * (in.v[t][place.channel] - k_scale * known_sum));
#pragma unroll
    for (int i = 0; i < 4 * Shape::kVectors; ++i) {
      h.at[i] = fmaf(k[i / 4].at[i % 4], change, h.at[i]);
    }
    if (place.lane == 0 && place.is_there()) {
      const float sum = in.q_scale[t] * fmaf(in.q_times_k[t], change, asked_sum);
      out[row * params.out_stride] = from_float<T>(sum);
    }
  });
  h.write(params.step, place, params.head_dim, params.state_size);
}

}  // namespace

void launch_delta_rule(cudaStream_t stream,
                       const DeltaRuleArgs& args,
                       const StateLayout& layout,
                       const StateStep& step) {
  if (step.num_rows == 0) return;
  const DeltaParams params = {.q = columns_of(args.q),
                              .k = columns_of(args.k),
                              .v = columns_of(args.v),
                              .beta = columns_of(args.beta),
                              .dt = columns_of(args.dt),
                              .out = args.out.data,
                              .out_stride = args.out.stride,
                              .strength = args.strength,
                              .floor = args.floor,
                              .decay = args.decay->as<const float>(),
                              .dt_bias = args.dt_bias->as<const float>(),
                              .head_dim = layout.head_dim,
                              .state_size = layout.state_size,
                              .heads_per_key = layout.num_heads / args.num_key_heads,
                              .step = step};
  with_element(args.v.dtype, [&](auto element) {
    const auto run = [&](auto shape, auto of_numbers) {
      using Shape = decltype(shape);
      launch(stream, state_launch<Shape>(layout.num_heads, params.head_dim, step.num_sequences),
             delta_rule<decltype(element), Shape, decltype(of_numbers)::value>, params);
    };
    if (layout.decays_numbers) {
      with_wide_state_shape(params.state_size, [&](auto shape) { run(shape, std::true_type{}); });
    } else {
      with_state_shape(params.state_size, [&](auto shape) { run(shape, std::false_type{}); });
    }
  });
}

}  // namespace tgi::cuda
