// See rows.h: embed, norm, activation, add, gather, logit transform.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/reduce.cuh"
#include "cuda/kernels/row_launch.h"
#include "cuda/kernels/rows.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

unsigned threads_for(int64_t count) {
  const int64_t warps = std::min<int64_t>((count + 31) / 32, 16);
  return static_cast<unsigned>(32 * std::max<int64_t>(warps, 1));
}

template <typename T, int N>
__global__ void embed(const T* table,
                      int64_t stride,
                      const T* positions,
                      int64_t position_stride,
                      int32_t num_ids,
                      const int32_t* token_ids,
                      const TokenRow* rows,
                      float multiplier,
                      T* out,
                      int64_t out_stride,
                      int32_t cols) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  const int32_t id = table == nullptr || token_ids[row] >= num_ids ? 0 : token_ids[row];
  const T* const from = table == nullptr ? out + row * out_stride : table + id * stride;
  const T* const position =
      positions == nullptr ? nullptr : positions + rows[row].position * position_stride;
  for (int32_t col = static_cast<int32_t>(threadIdx.x) * N; col < cols;
       col += static_cast<int32_t>(blockDim.x) * N) {
    const Vector<T, N> x = load<T, N>(from + col);
    Vector<T, N> y;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float value = to_float(x.at[i]) * multiplier;
      if (position != nullptr) value += to_float(position[col + i]);
      y.at[i] = from_float<T>(value);
    }
    store<T, N>(out + row * out_stride + col, y);
  }
}

struct NormShape {
  bool is_layer;  // else RMS
  float eps;
  float x_multiplier;
  int32_t cols;
  int64_t x_stride, residual_stride, out_stride;
};

// One CUDA block a row. The row is read three times at most, from L1 after the first. What is
// normalised is the sum as the residual holds it: rounded.
template <typename T, int N>
__global__ void norm(NormShape shape,
                     const float* __restrict__ weight,
                     const float* __restrict__ bias,
                     const T* x,
                     T* residual,
                     T* out) {
  __shared__ float scratch[2][32];
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  x += row * shape.x_stride;
  out += row * shape.out_stride;
  if (residual != nullptr) residual += row * shape.residual_stride;
  const auto begin = static_cast<int32_t>(threadIdx.x) * N;
  const auto step = static_cast<int32_t>(blockDim.x) * N;
  const T* const from = residual == nullptr ? x : residual;
  float sum = 0.0F;
  for (int32_t col = begin; col < shape.cols; col += step) {
    Vector<T, N> values = load<T, N>(x + col);
    if (residual != nullptr) {
      const Vector<T, N> before = load<T, N>(residual + col);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        values.at[i] =
            from_float<T>(fmaf(to_float(values.at[i]), shape.x_multiplier, to_float(before.at[i])));
      }
      store<T, N>(residual + col, values);
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float value = to_float(values.at[i]);
      sum += shape.is_layer ? value : value * value;
    }
  }
  sum = block_sum(sum, scratch[0]);
  const auto count = static_cast<float>(shape.cols);
  float mean = 0.0F;
  if (shape.is_layer) {
    mean = sum / count;
    sum = 0.0F;
    for (int32_t col = begin; col < shape.cols; col += step) {
      const Vector<T, N> values = load<T, N>(from + col);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float distance = to_float(values.at[i]) - mean;
        sum += distance * distance;
      }
    }
    sum = block_sum(sum, scratch[1]);
  }
  const float inverse = 1.0F / sqrtf(sum / count + shape.eps);
  for (int32_t col = begin; col < shape.cols; col += step) {
    const Vector<T, N> values = load<T, N>(from + col);
    Vector<T, N> y;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float value = (to_float(values.at[i]) - mean) * inverse * weight[col + i];
      if (bias != nullptr) value += bias[col + i];
      y.at[i] = from_float<T>(value);
    }
    store<T, N>(out + col, y);
  }
}

__device__ __forceinline__ float activate(Activation kind, float x) {
  switch (kind) {
    case Activation::kSilu:
      return x / (1.0F + expf(-x));
    case Activation::kGelu:
      return 0.5F * x * erfcf(x * -0.70710678118654752F);
    case Activation::kGeluTanh:
      return 0.5F * x * (1.0F + tanhf(0.79788456080286536F * (x + 0.044715F * x * x * x)));
    case Activation::kRelu:
      return fmaxf(x, 0.0F);
    case Activation::kReluSquared:
      return x > 0.0F ? x * x : 0.0F;
    case Activation::kXielu:  // below
      break;
  }
  return x;
}

// What is not a number stays so.
__device__ __forceinline__ float xielu(const XieluNumbers& numbers, float x) {
  const float line = numbers.beta * x;
  if (x > 0.0F) return fmaf(numbers.alpha_p * x, x, line);
  const float held = x > numbers.eps ? numbers.eps : x;
  return fmaf(numbers.alpha_n, expm1f(held) - x, line);
}

// What is not a number stays so.
__device__ __forceinline__ float limited_silu(const GateLimits& limits, float gate, float up) {
  if (gate > limits.limit) gate = limits.limit;
  if (up > limits.up_limit) up = limits.up_limit;
  if (up < -limits.up_limit) up = -limits.up_limit;
  return gate / (1.0F + expf(-limits.slope * gate)) * (up + limits.up_offset);
}

template <typename T, int N>
__global__ void activation(Activation kind,
                           bool gated,
                           const __grid_constant__ GateLimits limits,
                           const __grid_constant__ XieluNumbers numbers,
                           const T* in,
                           int64_t in_stride,
                           T* out,
                           int64_t out_stride,
                           int32_t cols) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  const auto col = static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x) * N;
  if (col >= cols) return;
  const T* const from = in + row * in_stride + col;
  const Vector<T, N> x = load<T, N>(from);
  const Vector<T, N> up = gated ? load<T, N>(from + cols) : x;
  Vector<T, N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (limits.limit > 0.0F) {
      y.at[i] = from_float<T>(limited_silu(limits, to_float(x.at[i]), to_float(up.at[i])));
      continue;
    }
    if (kind == Activation::kXielu) {
      y.at[i] = from_float<T>(xielu(numbers, to_float(x.at[i])));
      continue;
    }
    const float value = activate(kind, to_float(x.at[i]));
    y.at[i] = from_float<T>(gated ? value * to_float(up.at[i]) : value);
  }
  store<T, N>(out + row * out_stride + col, y);
}

template <typename T, int N>
__global__ void add(const T* x,
                    int64_t x_stride,
                    const T* y,
                    int64_t y_stride,
                    float y_multiplier,
                    const T* y_gate,
                    int64_t y_gate_stride,
                    T* out,
                    int64_t out_stride,
                    int32_t cols) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  const auto col = static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x) * N;
  if (col >= cols) return;
  if (y_gate != nullptr) y_multiplier /= 1.0F + expf(-to_float(y_gate[row * y_gate_stride]));
  const Vector<T, N> b = load<T, N>(y + row * y_stride + col);
  Vector<T, N> a = b;
  if (x != nullptr) a = load<T, N>(x + row * x_stride + col);
  Vector<T, N> sum;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float before = x == nullptr ? 0.0F : to_float(a.at[i]);
    sum.at[i] = from_float<T>(fmaf(to_float(b.at[i]), y_multiplier, before));
  }
  store<T, N>(out + row * out_stride + col, sum);
}

template <typename T>
__global__ void add_bias(T* out, int64_t stride, const float* __restrict__ bias, int32_t cols) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  const auto col = static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x);
  if (col >= cols) return;
  T& x = out[row * stride + col];
  x = from_float<T>(to_float(x) + bias[col]);
}

template <typename T>
__global__ void gather(
    const T* x, int64_t x_stride, const LogitRow* rows, T* out, int64_t out_stride, int32_t cols) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const T* const from = x + rows[blockIdx.x].row * x_stride;
  T* const to = out + blockIdx.x * out_stride;
  for (auto col = static_cast<int32_t>(threadIdx.x); col < cols;
       col += static_cast<int32_t>(blockDim.x)) {
    to[col] = from[col];
  }
}

template <typename T>
__global__ void copy_heads(const T* from,
                           int64_t from_stride,
                           int32_t from_dim,
                           T* to,
                           int64_t to_stride,
                           int32_t to_dim,
                           int32_t cols) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  const auto col = static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x);
  if (col >= cols) return;
  const int32_t d = col % to_dim;
  to[row * to_stride + col] =
      d < from_dim ? from[row * from_stride + col / to_dim * from_dim + d] : from_float<T>(0.0F);
}

__global__ void transform_logits(LogitTransform transform,
                                 float* logits,
                                 int64_t stride,
                                 int32_t cols) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  const auto col = static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x);
  if (col >= cols) return;
  float& logit = logits[row * stride + col];
  float x = (logit + (transform.bias == nullptr ? 0.0F : transform.bias[col])) * transform.scale;
  if (transform.softcap > 0.0F) x = transform.softcap * tanhf(x / transform.softcap);
  logit = x;
}

LaunchShape block_per_row(int64_t rows, int64_t cols, int width) {
  return {.grid = dim3(static_cast<unsigned>(rows)),
          .block = dim3(threads_for((cols + width - 1) / width)),
          .shared_bytes = 0,
          .overlaps_previous = true};
}

}  // namespace

void launch_embed(cudaStream_t stream, const EmbedLaunch& args) {
  if (args.out.rows == 0) return;
  const bool wide =
      is_wide(args.out) && args.stride % kWide == 0 && args.position_stride % kWide == 0;
  with_width(args.out.dtype, wide, [&](auto element, auto width) {
    using T = decltype(element);
    launch(stream, block_per_row(args.out.rows, args.out.cols, width()), embed<T, width()>,
           static_cast<const T*>(args.table), args.stride,
           static_cast<const T*>(args.position_table), args.position_stride, args.num_ids,
           args.token_ids, args.rows, args.multiplier, args.out.as<T>(), args.out.stride,
           static_cast<int32_t>(args.out.cols));
  });
}

void launch_norm(cudaStream_t stream, const NormArgs& args) {
  if (args.x.rows == 0) return;
  const NormShape shape = {.is_layer = args.kind == NormKind::kLayer,
                           .eps = args.eps,
                           .x_multiplier = args.x_multiplier,
                           .cols = static_cast<int32_t>(args.x.cols),
                           .x_stride = args.x.stride,
                           .residual_stride = args.residual.stride,
                           .out_stride = args.out.stride};
  const bool wide = is_wide(args.x) && is_wide(args.residual) && is_wide(args.out);
  with_width(args.x.dtype, wide, [&](auto element, auto width) {
    using T = decltype(element);
    launch(stream, block_per_row(args.x.rows, args.x.cols, width()), norm<T, width()>, shape,
           args.weight->as<const float>(),
           args.bias == nullptr ? nullptr : args.bias->as<const float>(), args.x.as<const T>(),
           args.residual.as<T>(), args.out.as<T>());
  });
}

void launch_activation(cudaStream_t stream, const ActivationArgs& args) {
  if (args.out.rows == 0) return;
  const bool wide = is_wide(args.in) && is_wide(args.out);
  with_width(args.out.dtype, wide, [&](auto element, auto width) {
    using T = decltype(element);
    launch(stream, elementwise(args.out.rows, args.out.cols, width()), activation<T, width()>,
           args.kind, args.gated, args.limits, args.xielu, args.in.as<const T>(), args.in.stride,
           args.out.as<T>(), args.out.stride, static_cast<int32_t>(args.out.cols));
  });
}

void launch_add(cudaStream_t stream, const AddArgs& args) {
  if (args.y.rows == 0) return;
  const bool wide = is_wide(args.x) && is_wide(args.y) && is_wide(args.out);
  with_width(args.y.dtype, wide, [&](auto element, auto width) {
    using T = decltype(element);
    launch(stream, elementwise(args.y.rows, args.y.cols, width()), add<T, width()>,
           args.x.as<const T>(), args.x.stride, args.y.as<const T>(), args.y.stride,
           args.y_multiplier, args.y_gate == nullptr ? nullptr : args.y_gate->as<const T>(),
           args.y_gate == nullptr ? 0 : args.y_gate->stride, args.out.as<T>(), args.out.stride,
           static_cast<int32_t>(args.y.cols));
  });
}

void launch_add_bias(cudaStream_t stream, const Tensor& out, const float* bias) {
  if (out.rows == 0) return;
  const auto add_to = [&](auto element) {
    using T = decltype(element);
    launch(stream, elementwise(out.rows, out.cols, 1), add_bias<T>, out.as<T>(), out.stride, bias,
           static_cast<int32_t>(out.cols));
  };
  if (out.dtype == DType::kF32) return add_to(float{});
  with_element(out.dtype, add_to);
}

void launch_gather(cudaStream_t stream, const Tensor& x, const LogitRow* rows, const Tensor& out) {
  if (out.rows == 0) return;
  with_element(x.dtype, [&](auto element) {
    using T = decltype(element);
    launch(stream, block_per_row(out.rows, out.cols, 1), gather<T>, x.as<const T>(), x.stride, rows,
           out.as<T>(), out.stride, static_cast<int32_t>(out.cols));
  });
}

void launch_copy_heads(
    cudaStream_t stream, const Tensor& from, int32_t from_dim, const Tensor& to, int32_t to_dim) {
  if (to.rows == 0) return;
  with_element(to.dtype, [&](auto element) {
    using T = decltype(element);
    launch(stream, elementwise(to.rows, to.cols, 1), copy_heads<T>, from.as<const T>(), from.stride,
           from_dim, to.as<T>(), to.stride, to_dim, static_cast<int32_t>(to.cols));
  });
}

void launch_logit_transform(cudaStream_t stream,
                            const Tensor& logits,
                            const LogitTransform& transform) {
  if (transform.bias == nullptr && transform.scale == 1.0F && transform.softcap == 0.0F) return;
  launch(stream, elementwise(logits.rows, logits.cols, 1), transform_logits, transform,
         logits.as<float>(), logits.stride, static_cast<int32_t>(logits.cols));
}

}  // namespace tgi::cuda
