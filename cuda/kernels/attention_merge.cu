// Puts together what the blocks of attention_decode found out about pieces of one context, in the
// order of the context.
#include "cuda/kernels/attention_tiles.cuh"
#include "cuda/kernels/dispatch.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kMergeThreads = 256;

// Block (m, h, w): head h of kv head w of those that merge m stands for. Columns are dealt to
// threads by four, and what threads are left share the partials: piece s takes each kSplits-th from
// s on.
template <typename T>
__global__ void __launch_bounds__(kMergeThreads)
    attention_merge(const __grid_constant__ AttentionParams params) {
  __shared__ float warp_largest[kMergeThreads / 32];
  __shared__ float piece_sums[kMergeThreads];
  __shared__ Vector<float, 4> pieces[kMergeThreads];
  wait_for_previous_kernel();
  launch_next_kernel();
  if (static_cast<int32_t>(blockIdx.x) >= *params.plan.num_merges) return;
  DecodeMerge merge = params.plan.merges[blockIdx.x];
  merge.kv_head = merge.kv_head * params.heads_of_item + static_cast<int32_t>(blockIdx.z);
  const int head = static_cast<int>(blockIdx.y);
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t size = partial_floats(params.group, params.head_dim);
  const int64_t stride = size * params.heads_of_item;
  const float* const first = params.partials + merge.first_partial * stride + blockIdx.z * size;
  const float* const states = first + params.group * params.head_dim + 2 * head;

  const float sink = sink_of(params, merge.kv_head, head);
  float largest = sink;
  for (int i = thread; i < merge.num_partials; i += kMergeThreads) {
    largest = fmaxf(largest, states[i * stride]);
  }
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, lanes));
  }
  if (thread % 32 == 0) warp_largest[thread / 32] = largest;
  __syncthreads();
#pragma unroll
  for (const float x : warp_largest) largest = fmaxf(largest, x);

  const int num_columns = params.head_dim / 4;
  const int num_splits = kMergeThreads / num_columns;
  const int split = thread / num_columns;
  const int column = thread % num_columns * 4;
  Vector<float, 4> out = {};
  float sum = split == 0 ? weight_of(sink, largest) : 0.0F;
  if (split < num_splits) {
#pragma unroll 4
    for (int i = split; i < merge.num_partials; i += num_splits) {
      const auto state = load<float, 2>(states + i * stride);
      const auto part = load<float, 4>(first + i * stride + head * params.head_dim + column);
      const float weight = weight_of(state.at[0], largest);
      sum = fmaf(weight, state.at[1], sum);
#pragma unroll
      for (int j = 0; j < 4; ++j) out.at[j] = fmaf(weight, part.at[j], out.at[j]);
    }
  }
  pieces[thread] = out;
  piece_sums[thread] = sum;
  __syncthreads();
  if (thread >= num_columns) return;
  for (int s = 1; s < min(num_splits, merge.num_partials); ++s) {
    const Vector<float, 4> piece = pieces[s * num_columns + thread];
    sum += piece_sums[s * num_columns + thread];
#pragma unroll
    for (int j = 0; j < 4; ++j) out.at[j] += piece.at[j];
  }
  Vector<T, 4> rounded;
#pragma unroll
  for (int j = 0; j < 4; ++j) rounded.at[j] = from_float<T>(__fdividef(out.at[j], sum));
  const int64_t row = params.plan.sequences[merge.sequence].first_row;
  store(static_cast<T*>(params.out) + row * params.out_stride +
            (static_cast<int64_t>(merge.kv_head) * params.group + head) * params.head_dim + column,
        rounded);
}

}  // namespace

void launch_attention_merge(cudaStream_t stream,
                            DType dtype,
                            int32_t max_merges,
                            const AttentionParams& params) {
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    launch(stream,
           {.grid = dim3(static_cast<unsigned>(max_merges), static_cast<unsigned>(params.group),
                         static_cast<unsigned>(params.heads_of_item)),
            .block = dim3(kMergeThreads),
            .shared_bytes = 0,
            .overlaps_previous = true},
           attention_merge<T>, params);
  });
}

}  // namespace tgi::cuda
