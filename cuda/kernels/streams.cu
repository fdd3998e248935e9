// See streams.h. A thread takes some columns of all streams of a row, so that what they were is in
// its registers when the first of them is written.
#include "cuda/kernels/streams.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/reduce.cuh"
#include "cuda/kernels/row_launch.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kMaxRowThreads = 512;

template <typename T>
struct RoutingShape {
  int32_t count;
  float scale;
  const T* routed;
  int64_t routed_stride;
  const float* matrix;  // (coefficients, count)
};

// Of a row, by the first `num` threads; there for all behind a barrier.
template <typename T>
__device__ __forceinline__ void find_coefficients(const RoutingShape<T>& shape,
                                                  int64_t row,
                                                  int32_t num,
                                                  float* coefficients) {
  const auto i = static_cast<int32_t>(threadIdx.x);
  if (i >= num) return;
  const T* const routed = shape.routed + row * shape.routed_stride;
  float sum = 0.0F;
  for (int32_t j = 0; j < shape.count; ++j) {
    sum = fmaf(shape.matrix[i * shape.count + j], tanhf(to_float(routed[j]) * shape.scale), sum);
  }
  coefficients[i] = sum;
}

template <typename T, int N, int kMost>
__global__ void predict_streams(const __grid_constant__ RoutingShape<T> routing,
                                T* streams,
                                int64_t stride,
                                int32_t cols) {
  __shared__ float coefficients[kMost * kMost];
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  const int32_t count = routing.count;
  find_coefficients(routing, row, count * count, coefficients);
  __syncthreads();
  const auto col = static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x) * N;
  if (col >= cols) return;
  T* const at = streams + row * stride + col;
  float before[kMost][N];
#pragma unroll
  for (int j = 0; j < kMost; ++j) {
    if (j >= count) break;
    const Vector<T, N> values = load<T, N>(at + int64_t{j} * cols);
#pragma unroll
    for (int n = 0; n < N; ++n) before[j][n] = to_float(values.at[n]);
  }
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    if (i >= count) break;
    float sums[N];
#pragma unroll
    for (int n = 0; n < N; ++n) sums[n] = before[i][n];
#pragma unroll
    for (int j = 0; j < kMost; ++j) {
      if (j >= count) break;
      const float coefficient = coefficients[i * count + j];
#pragma unroll
      for (int n = 0; n < N; ++n) sums[n] = fmaf(coefficient, before[j][n], sums[n]);
    }
    Vector<T, N> out;
#pragma unroll
    for (int n = 0; n < N; ++n) out.at[n] = from_float<T>(sums[n]);
    store<T, N>(at + int64_t{i} * cols, out);
  }
}

struct CorrectShape {
  int32_t active;
  int32_t cols;
  int64_t x_stride, streams_stride, out_stride;
};

// What is scaled is the active stream as it is stored: rounded.
template <typename T, int N>
__global__ void correct_streams(const __grid_constant__ RoutingShape<T> routing,
                                const __grid_constant__ CorrectShape shape,
                                const float* __restrict__ scales,
                                const T* x,
                                T* streams,
                                T* out) {
  __shared__ float coefficients[kMaxStreams];
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  find_coefficients(routing, row, routing.count, coefficients);
  __syncthreads();
  const auto col = static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x) * N;
  if (col >= shape.cols) return;
  T* const at = streams + row * shape.streams_stride + col;
  const Vector<T, N> made = load<T, N>(x + row * shape.x_stride + col);
  const Vector<T, N> was = load<T, N>(at + int64_t{shape.active} * shape.cols);
  float change[N];
#pragma unroll
  for (int n = 0; n < N; ++n) change[n] = to_float(made.at[n]) - to_float(was.at[n]);
  Vector<T, N> result = was;
  for (int32_t i = 0; i < routing.count; ++i) {
    T* const own = at + int64_t{i} * shape.cols;
    const float factor = 1.0F + coefficients[i];
    Vector<T, N> values = load<T, N>(own);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      values.at[n] = from_float<T>(fmaf(factor, change[n], to_float(values.at[n])));
    }
    store<T, N>(own, values);
    if (i == shape.active) result = values;
  }
  if (scales != nullptr) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      result.at[n] = from_float<T>(to_float(result.at[n]) * scales[col + n]);
    }
  }
  store<T, N>(out + row * shape.out_stride + col, result);
}

// Calls use(value) for each number of a row, dealt to the threads of a block by `N`.
template <typename T, int N, typename Use>
__device__ __forceinline__ void visit_row(const T* row, int32_t cols, Use use) {
  for (int32_t col = static_cast<int32_t>(threadIdx.x) * N; col < cols;
       col += static_cast<int32_t>(blockDim.x) * N) {
    const Vector<T, N> values = load<T, N>(row + col);
#pragma unroll
    for (int n = 0; n < N; ++n) use(to_float(values.at[n]));
  }
}

// Likewise, and keeps what it gives.
template <typename T, int N, typename Change>
__device__ __forceinline__ void change_row(T* row, int32_t cols, Change change) {
  for (int32_t col = static_cast<int32_t>(threadIdx.x) * N; col < cols;
       col += static_cast<int32_t>(blockDim.x) * N) {
    Vector<T, N> values = load<T, N>(row + col);
#pragma unroll
    for (int n = 0; n < N; ++n) values.at[n] = from_float<T>(change(to_float(values.at[n])));
    store<T, N>(row + col, values);
  }
}

template <typename T, int N>
__global__ void __launch_bounds__(kMaxRowThreads) match_rms(
    float least_square, const T* like, int64_t like_stride, T* x, int64_t x_stride, int32_t cols) {
  __shared__ float scratch[2][32];
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  x += row * x_stride;
  float wanted = 0.0F;
  float own = 0.0F;
  visit_row<T, N>(like + row * like_stride, cols, [&](float y) { wanted = fmaf(y, y, wanted); });
  visit_row<T, N>(x, cols, [&](float y) { own = fmaf(y, y, own); });
  const auto count = static_cast<float>(cols);
  wanted = block_sum(wanted, scratch[0]) / count;
  own = block_sum(own, scratch[1]) / count;
  const float factor = sqrtf(wanted / (own < least_square ? least_square : own));
  change_row<T, N>(x, cols, [&](float y) { return y * factor; });
}

// What is not a number stays so.
template <typename T, int N>
__global__ void __launch_bounds__(kMaxRowThreads)
    statistical_top_k(float deviations, T* x, int64_t stride, int32_t cols) {
  __shared__ float scratch[2][32];
  wait_for_previous_kernel();
  launch_next_kernel();
  x += static_cast<int64_t>(blockIdx.x) * stride;
  const auto count = static_cast<float>(cols);
  float sum = 0.0F;
  visit_row<T, N>(x, cols, [&](float y) { sum += y; });
  const float mean = block_sum(sum, scratch[0]) / count;
  float squares = 0.0F;
  visit_row<T, N>(x, cols, [&](float y) { squares = fmaf(y - mean, y - mean, squares); });
  const float cutoff = fmaf(sqrtf(block_sum(squares, scratch[1]) / count), deviations, mean);
  change_row<T, N>(x, cols, [&](float y) { return y < cutoff ? 0.0F : y - cutoff; });
}

template <typename T>
struct ConnectionShape {
  int32_t count;
  int32_t cols;
  float norm_eps;
  float eps;
  const T* made;
  int64_t made_stride;
  const float* base;
  const float* scales;
  T* streams;
  int64_t streams_stride;
};

// The first `num` numbers of a row, there for all behind a barrier. A thread has one or more.
template <typename T, int N>
__device__ __forceinline__ void find_numbers(
    const ConnectionShape<T>& shape, int64_t row, int32_t num, float* scratch, float* numbers) {
  const int32_t all = shape.count * shape.cols;
  float squares = 0.0F;
  visit_row<T, N>(shape.streams + row * shape.streams_stride, all,
                  [&](float y) { squares = fmaf(y, y, squares); });
  const float mean = block_sum(squares, scratch) / static_cast<float>(all);
  const float inverse = 1.0F / sqrtf(mean + shape.norm_eps);
  for (auto i = static_cast<int32_t>(threadIdx.x); i < num; i += static_cast<int32_t>(blockDim.x)) {
    const int32_t kind = i < 2 * shape.count ? i / shape.count : 2;
    const float made = to_float(shape.made[row * shape.made_stride + i]) * inverse;
    numbers[i] = fmaf(made, shape.scales[kind], shape.base[i]);
  }
  __syncthreads();
}

__device__ __forceinline__ float sigmoid_of(float x) {
  return 1.0F / (1.0F + expf(-x));
}

template <typename T, int N>
__global__ void __launch_bounds__(kMaxRowThreads)
    collapse_streams(const __grid_constant__ ConnectionShape<T> shape, T* out, int64_t out_stride) {
  __shared__ float scratch[32];
  __shared__ float numbers[kMaxStreams];
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  find_numbers<T, N>(shape, row, shape.count, scratch, numbers);
  const T* const streams = shape.streams + row * shape.streams_stride;
  for (int32_t col = static_cast<int32_t>(threadIdx.x) * N; col < shape.cols;
       col += static_cast<int32_t>(blockDim.x) * N) {
    float sums[N] = {};
    for (int32_t i = 0; i < shape.count; ++i) {
      const float weight = sigmoid_of(numbers[i]) + shape.eps;
      const Vector<T, N> values = load<T, N>(streams + int64_t{i} * shape.cols + col);
#pragma unroll
      for (int n = 0; n < N; ++n) sums[n] = fmaf(weight, to_float(values.at[n]), sums[n]);
    }
    Vector<T, N> result;
#pragma unroll
    for (int n = 0; n < N; ++n) result.at[n] = from_float<T>(sums[n]);
    store<T, N>(out + row * out_stride + col, result);
  }
}

struct ExpandShape {
  float magnitude;
  float branch_eps;
  int32_t mixing_turns;
  int64_t x_stride;
};

// Thread a < count has line a: first its row, then by turns a column and a row.
__device__ __forceinline__ void make_mix(int32_t count, int32_t turns, float eps, float* mix) {
  const auto a = static_cast<int32_t>(threadIdx.x);
  if (a < count) {
    float* const own = mix + a * count;
    float highest = own[0];
    for (int32_t k = 1; k < count; ++k) highest = fmaxf(highest, own[k]);
    float sum = 0.0F;
    for (int32_t k = 0; k < count; ++k) sum += own[k] = expf(own[k] - highest);
    for (int32_t k = 0; k < count; ++k) own[k] = own[k] / sum + eps;
  }
  for (int32_t step = 0; step < 2 * turns - 1; ++step) {
    __syncthreads();
    if (a >= count) continue;
    const int32_t to_next = step % 2 == 0 ? count : 1;
    float* const line = mix + a * (step % 2 == 0 ? 1 : count);
    float sum = eps;
    for (int32_t b = 0; b < count; ++b) sum += line[b * to_next];
    for (int32_t b = 0; b < count; ++b) line[b * to_next] /= sum;
  }
  __syncthreads();
}

template <typename T, int N>
__global__ void __launch_bounds__(kMaxRowThreads)
    expand_streams(const __grid_constant__ ConnectionShape<T> shape,
                   const __grid_constant__ ExpandShape expand,
                   const T* x) {
  __shared__ float scratch[32];
  __shared__ float numbers[(2 + kMaxStreams) * kMaxStreams];
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  const int32_t count = shape.count;
  const bool mixes = expand.mixing_turns > 0;
  find_numbers<T, N>(shape, row, (2 + (mixes ? count : 0)) * count, scratch, numbers);
  float* const mix = numbers + 2 * count;
  if (mixes) make_mix(count, expand.mixing_turns, shape.eps, mix);
  T* const streams = shape.streams + row * shape.streams_stride;
  for (int32_t col = static_cast<int32_t>(threadIdx.x) * N; col < shape.cols;
       col += static_cast<int32_t>(blockDim.x) * N) {
    const Vector<T, N> added = load<T, N>(x + row * expand.x_stride + col);
    float before[kMaxStreams][N];
#pragma unroll
    for (int j = 0; j < kMaxStreams; ++j) {
      if (j >= count) break;
      const Vector<T, N> values = load<T, N>(streams + int64_t{j} * shape.cols + col);
#pragma unroll
      for (int n = 0; n < N; ++n) before[j][n] = to_float(values.at[n]);
    }
#pragma unroll
    for (int k = 0; k < kMaxStreams; ++k) {
      if (k >= count) break;
      const float weight =
          fmaf(sigmoid_of(numbers[count + k]), expand.magnitude, expand.branch_eps);
      float sums[N];
#pragma unroll
      for (int n = 0; n < N; ++n) sums[n] = mixes ? 0.0F : before[k][n];
#pragma unroll
      for (int j = 0; j < kMaxStreams; ++j) {
        if (!mixes || j >= count) break;
#pragma unroll
        for (int n = 0; n < N; ++n) sums[n] = fmaf(mix[j * count + k], before[j][n], sums[n]);
      }
      Vector<T, N> result;
#pragma unroll
      for (int n = 0; n < N; ++n) {
        result.at[n] = from_float<T>(fmaf(weight, to_float(added.at[n]), sums[n]));
      }
      store<T, N>(streams + int64_t{k} * shape.cols + col, result);
    }
  }
}

template <typename T>
ConnectionShape<T> shape_of(const StreamConnection& connection) {
  return {.count = connection.count,
          .cols = static_cast<int32_t>(connection.streams.cols / connection.count),
          .norm_eps = connection.norm_eps,
          .eps = connection.eps,
          .made = connection.made.as<const T>(),
          .made_stride = connection.made.stride,
          .base = connection.base->as<const float>(),
          .scales = connection.scales->as<const float>(),
          .streams = connection.streams.as<T>(),
          .streams_stride = connection.streams.stride};
}

template <typename T>
RoutingShape<T> shape_of(const StreamRouting& routing) {
  return {.count = routing.count,
          .scale = routing.scale,
          .routed = routing.routed.as<const T>(),
          .routed_stride = routing.routed.stride,
          .matrix = routing.matrix->as<const float>()};
}

// Of `count` streams in a row, each of which begins where it can be read in vectors.
bool is_wide_each(const Tensor& streams, int32_t count) {
  return is_wide(streams) && streams.cols / count % kWide == 0;
}

LaunchShape block_of_row(int64_t rows, int64_t cols, int width) {
  const int64_t vectors = (cols + width - 1) / width;
  const int64_t threads = std::clamp<int64_t>((vectors + 31) / 32 * 32, 32, kMaxRowThreads);
  return {.grid = dim3(static_cast<unsigned>(rows)),
          .block = dim3(static_cast<unsigned>(threads)),
          .shared_bytes = 0,
          .overlaps_previous = true};
}

}  // namespace

void launch_predict_streams(cudaStream_t stream, const PredictStreamsArgs& args) {
  if (args.streams.rows == 0) return;
  const int32_t count = args.routing.count;
  TGI_CHECK(count <= kMaxStreams);
  const auto cols = static_cast<int32_t>(args.streams.cols / count);
  with_width(args.streams.dtype, is_wide_each(args.streams, count), [&](auto element, auto width) {
    using T = decltype(element);
    const auto use = [&](auto kernel) {
      launch(stream, elementwise(args.streams.rows, cols, width()), kernel,
             shape_of<T>(args.routing), args.streams.as<T>(), args.streams.stride, cols);
    };
    if (count <= 4) {
      use(predict_streams<T, width(), 4>);
    } else {
      use(predict_streams<T, width(), kMaxStreams>);
    }
  });
}

void launch_correct_streams(cudaStream_t stream, const CorrectStreamsArgs& args) {
  if (args.streams.rows == 0) return;
  const int32_t count = args.routing.count;
  TGI_CHECK(count <= kMaxStreams);
  const CorrectShape shape = {.active = args.active,
                              .cols = static_cast<int32_t>(args.x.cols),
                              .x_stride = args.x.stride,
                              .streams_stride = args.streams.stride,
                              .out_stride = args.out.stride};
  const bool wide = is_wide_each(args.streams, count) && is_wide(args.x) && is_wide(args.out);
  with_width(args.streams.dtype, wide, [&](auto element, auto width) {
    using T = decltype(element);
    launch(stream, elementwise(args.streams.rows, args.x.cols, width()),
           correct_streams<T, width()>, shape_of<T>(args.routing), shape,
           args.scales == nullptr ? nullptr : args.scales->as<const float>(), args.x.as<const T>(),
           args.streams.as<T>(), args.out.as<T>());
  });
}

void launch_collapse_streams(cudaStream_t stream, const CollapseStreamsArgs& args) {
  if (args.out.rows == 0) return;
  const StreamConnection& connection = args.connection;
  TGI_CHECK(connection.count <= kMaxStreams);
  const bool wide = is_wide_each(connection.streams, connection.count) && is_wide(args.out);
  with_width(args.out.dtype, wide, [&](auto element, auto width) {
    using T = decltype(element);
    launch(stream, block_of_row(args.out.rows, args.out.cols, width()),
           collapse_streams<T, width()>, shape_of<T>(connection), args.out.as<T>(),
           args.out.stride);
  });
}

void launch_expand_streams(cudaStream_t stream, const ExpandStreamsArgs& args) {
  if (args.x.rows == 0) return;
  const StreamConnection& connection = args.connection;
  TGI_CHECK(connection.count <= kMaxStreams);
  const bool wide = is_wide_each(connection.streams, connection.count) && is_wide(args.x);
  const ExpandShape expand = {.magnitude = args.magnitude,
                              .branch_eps = args.branch_eps,
                              .mixing_turns = args.mixing_turns,
                              .x_stride = args.x.stride};
  with_width(args.x.dtype, wide, [&](auto element, auto width) {
    using T = decltype(element);
    launch(stream, block_of_row(args.x.rows, args.x.cols, width()), expand_streams<T, width()>,
           shape_of<T>(connection), expand, args.x.as<const T>());
  });
}

void launch_match_rms(cudaStream_t stream, const MatchRmsArgs& args) {
  if (args.x.rows == 0) return;
  with_width(args.x.dtype, is_wide(args.x) && is_wide(args.like), [&](auto element, auto width) {
    using T = decltype(element);
    launch(stream, block_of_row(args.x.rows, args.x.cols, width()), match_rms<T, width()>,
           args.least_square, args.like.as<const T>(), args.like.stride, args.x.as<T>(),
           args.x.stride, static_cast<int32_t>(args.x.cols));
  });
}

void launch_statistical_top_k(cudaStream_t stream, const StatisticalTopKArgs& args) {
  if (args.x.rows == 0) return;
  with_width(args.x.dtype, is_wide(args.x), [&](auto element, auto width) {
    using T = decltype(element);
    launch(stream, block_of_row(args.x.rows, args.x.cols, width()), statistical_top_k<T, width()>,
           args.deviations, args.x.as<T>(), args.x.stride, static_cast<int32_t>(args.x.cols));
  });
}

}  // namespace tgi::cuda
