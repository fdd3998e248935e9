// See state.h: the gate of what a layer with a state gives, with or without an RMS norm of groups
// of columns.
#include <algorithm>

#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/reduce.cuh"
#include "cuda/kernels/row_launch.h"
#include "cuda/kernels/state.h"
#include "cuda/kernels/state_tile.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kThreads = 128;

struct GateParams {
  void* x;
  const void* gate;
  int64_t x_stride, gate_stride;
  const float* weight;
  int64_t weight_step;  // from one group's to the next one's; 0: all share it
  int32_t cols;
  int32_t gate_span;  // columns of x that share a gate
  int32_t group_size;
  float eps;
  bool norm_first;
  GateKind kind;
};

__device__ __forceinline__ float gated(const GateParams& params, float x, float gate) {
  if (params.kind == GateKind::kSoftplus) return x * softplus(gate);
  const float sigmoid = 1.0F / (1.0F + expf(-gate));
  return params.kind == GateKind::kSilu ? x * (gate * sigmoid) : x * sigmoid;
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads) gate_rows(const __grid_constant__ GateParams params) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  const auto col = static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x) * N;
  if (col >= params.cols) return;
  T* const at = static_cast<T*>(params.x) + row * params.x_stride + col;
  const T* const gates = static_cast<const T*>(params.gate) + row * params.gate_stride;
  Vector<T, N> gate;
  if (params.gate_span == 1) {
    gate = load<T, N>(gates + col);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) gate.at[i] = gates[(col + i) / params.gate_span];
  }
  auto x = load<T, N>(at);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    x.at[i] = from_float<T>(gated(params, to_float(x.at[i]), to_float(gate.at[i])));
  }
  store(at, x);
}

// A team of threadIdx.x has a group: a warp with others beside it in the block (threadIdx.y), or
// the whole block. What is between gate and norm is not rounded.
template <typename T, int N>
__global__ void gate_and_norm(const __grid_constant__ GateParams params) {
  __shared__ float scratch[32];
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto group = static_cast<int32_t>(blockIdx.y * blockDim.y + threadIdx.y);
  const int32_t first = group * params.group_size;
  if (first >= params.cols) return;  // a warp by itself, or nobody
  T* const x =
      static_cast<T*>(params.x) + static_cast<int64_t>(blockIdx.x) * params.x_stride + first;
  const T* const gate = static_cast<const T*>(params.gate) +
                        static_cast<int64_t>(blockIdx.x) * params.gate_stride + first;
  const float* const weight = params.weight + group * params.weight_step;
  const auto begin = static_cast<int32_t>(threadIdx.x) * N;
  const auto step = static_cast<int32_t>(blockDim.x) * N;
  // What goes into the norm.
  const auto values_at = [&](int32_t col) {
    const auto values = load<T, N>(x + col);
    Vector<float, N> out;
#pragma unroll
    for (int i = 0; i < N; ++i) out.at[i] = to_float(values.at[i]);
    if (!params.norm_first) {
      const auto gates = load<T, N>(gate + col);
#pragma unroll
      for (int i = 0; i < N; ++i) out.at[i] = gated(params, out.at[i], to_float(gates.at[i]));
    }
    return out;
  };
  float squares = 0.0F;
  for (int32_t col = begin; col < params.group_size; col += step) {
    const auto values = values_at(col);
#pragma unroll
    for (int i = 0; i < N; ++i) squares = fmaf(values.at[i], values.at[i], squares);
  }
  squares = blockDim.x == 32 ? warp_sum(squares) : block_sum(squares, scratch);
  const float inverse = 1.0F / sqrtf(squares / static_cast<float>(params.group_size) + params.eps);
  for (int32_t col = begin; col < params.group_size; col += step) {
    auto values = values_at(col);
#pragma unroll
    for (int i = 0; i < N; ++i) values.at[i] *= inverse * weight[col + i];
    if (params.norm_first) {
      const auto gates = load<T, N>(gate + col);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        values.at[i] = gated(params, values.at[i], to_float(gates.at[i]));
      }
    }
    Vector<T, N> out;
#pragma unroll
    for (int i = 0; i < N; ++i) out.at[i] = from_float<T>(values.at[i]);
    store(x + col, out);
  }
}

// Groups of up to two runs of a warp share a block, larger ones have one of their own.
LaunchShape norm_launch(int64_t rows, const GateParams& params, int width) {
  const int32_t num_groups = params.cols / params.group_size;
  const int32_t runs = (params.group_size + 32 * width - 1) / (32 * width);
  if (runs <= 2) {
    constexpr int32_t kGroups = kThreads / 32;
    return {.grid = dim3(static_cast<unsigned>(rows),
                         static_cast<unsigned>((num_groups + kGroups - 1) / kGroups)),
            .block = dim3(32, kGroups),
            .shared_bytes = 0,
            .overlaps_previous = true};
  }
  return {.grid = dim3(static_cast<unsigned>(rows), static_cast<unsigned>(num_groups)),
          .block = dim3(static_cast<unsigned>(32 * std::min(runs, 16))),
          .shared_bytes = 0,
          .overlaps_previous = true};
}

}  // namespace

void launch_gated_norm(cudaStream_t stream, const GatedNormArgs& args) {
  if (args.x.rows == 0) return;
  GateParams params = {.x = args.x.data,
                       .gate = args.gate.data,
                       .x_stride = args.x.stride,
                       .gate_stride = args.gate.stride,
                       .weight = nullptr,
                       .weight_step = 0,
                       .cols = static_cast<int32_t>(args.x.cols),
                       .gate_span = static_cast<int32_t>(args.x.cols / args.gate.cols),
                       .group_size = static_cast<int32_t>(args.group_size),
                       .eps = args.eps,
                       .norm_first = args.norm_first,
                       .kind = args.kind};
  bool wide = is_wide(args.x) && (params.gate_span > 1 || is_wide(args.gate));
  if (args.weight == nullptr) {
    with_width(args.x.dtype, wide, [&](auto element, auto width) {
      launch(stream, elementwise(args.x.rows, args.x.cols, width()),
             gate_rows<decltype(element), width()>, params);
    });
    return;
  }
  params.weight = args.weight->as<const float>();
  params.weight_step = args.weight->cols == args.group_size ? 0 : args.group_size;
  wide = wide && args.group_size % kWide == 0;
  with_width(args.x.dtype, wide, [&](auto element, auto width) {
    launch(stream, norm_launch(args.x.rows, params, width()),
           gate_and_norm<decltype(element), width()>, params);
  });
}

}  // namespace tgi::cuda
