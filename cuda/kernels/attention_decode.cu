// Attention of sequences with one query: a fixed grid of blocks works through the plan's items
// (runs of tiles of one sequence and kv head), then attention_merge puts the pieces together.
//
// All query heads of the kv head share one pass over its keys and values (16 at a time: the rows of
// mma). The time is that of reading the cache, so everything serves to keep loads on their way:
// each warp takes every kWarps-th slice of 16 tokens through its own ring of kStages slices and
// waits for nobody until the item's end, and the ring runs on into the next item. With 2 blocks on
// an SM at least 2 slices of each of their warps are on their way: 128 KiB for head_dim 128, where
// 4.8 TB/s on 132 SMs at 1 us ask for 36. The tensor cores are busy for about a tenth of the time,
// so that the rows of mma that a small group leaves empty cost nothing.
#include "base/error.h"
#include "cuda/kernels/attention_decode_rows.cuh"
#include "cuda/kernels/dispatch.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

// Item i of the plan, of the kv head `which` among those that it stands for.
__device__ __forceinline__ DecodeItem item_of(const AttentionParams& params,
                                              int32_t i,
                                              int32_t which) {
  DecodeItem item = params.plan.items[i];
  item.kv_head = item.kv_head * params.heads_of_item + which;
  if (item.partial >= 0) item.partial = item.partial * params.heads_of_item + which;
  return item;
}

__device__ __forceinline__ Span visible_span(const DecodeItem& item,
                                             const SequenceRows& sequence,
                                             const AttentionParams& params) {
  Span out;
  out.end = item.first_token + item.num_tokens;
  out.begin = max(item.first_token, first_seen(sequence.context_len - 1, params.sliding_window,
                                               params.attention_chunk));
  out.first_slice = out.begin / kSlice * kSlice;
  return out;
}

// Walks over the slices of one warp, over all items of the block and their passes, ahead of the
// arithmetic.
template <typename C, int kDim>
class SliceLoader {
  using Shape = DecodeShape<C, kDim>;

 public:
  __device__ __forceinline__ SliceLoader(
      const AttentionParams& params, int32_t first_item, int32_t end_item, int warp, int lane)
      : params_(params), item_(first_item), end_item_(end_item), warp_(warp), lane_(lane) {
    enter_item();
    settle();
  }

  // Starts the next slice, if there is one left; one group of copies either way.
  __device__ __forceinline__ void load(std::byte* slice) {
    if (item_ < end_item_) {
      const int num_rows = rows_.end - token_;
      const int row_bytes = params_.head_dim * static_cast<int>(sizeof(C));
      copy_rows<kSlice, Shape::kRowBytes, 32>(slice, params_.cache.keys, row_, lane_, num_rows,
                                              row_bytes);
      copy_rows<kSlice, Shape::kRowBytes, 32>(slice + Shape::kValuesAt, params_.cache.values, row_,
                                              lane_, num_rows, row_bytes);
      token_ += kSlice * Shape::kWarps;
      settle();
    }
    cp_async_commit();
  }

 private:
  __device__ __forceinline__ void enter_item() {
    if (item_ >= end_item_) return;
    const DecodeItem item = item_of(params_, item_, static_cast<int32_t>(blockIdx.y));
    const SequenceRows sequence = params_.plan.sequences[item.sequence];
    const Span span = visible_span(item, sequence, params_);
    rows_ = context_rows(params_, sequence, item.kv_head, span.end);
    first_token_ = span.first_slice + kSlice * warp_;
    token_ = first_token_;
  }

  // To the next slice that there is; looks up where it lies, so that the answer is there when it is
  // loaded.
  __device__ __forceinline__ void settle() {
    while (item_ < end_item_ && token_ >= rows_.end) {
      head_ += kHeadRows;
      if (head_ < params_.group && first_token_ < rows_.end) {
        token_ = first_token_;
      } else {
        head_ = 0;
        ++item_;
        enter_item();
      }
    }
    if (item_ < end_item_) row_ = rows_.row_of(token_ + lane_ % 2 * 8);
  }

  const AttentionParams& params_;
  int32_t item_;
  const int32_t end_item_;
  const int warp_;
  const int lane_;
  int32_t head_ = 0;  // the first of the pass
  ContextRows rows_ = {};
  int32_t first_token_ = 0;
  int32_t token_ = 0;
  int32_t row_ = 0;  // of the cache; of tokens token_ and token_ + 8 in even and odd lanes
};

// Merges kMergeRows rows of all warps, in their order, into the output or the item's partial.
template <typename T, typename C, int kDim>
__device__ __forceinline__ void merge_warps(
    const AttentionParams& params,
    const DecodeItem& item,
    int64_t out_row,
    int first_head,
    const float* const (&sums)[DecodeShape<C, kDim>::kWarps],
    const MergeState (*states)[kMergeRows]) {
  constexpr int kWarps = DecodeShape<C, kDim>::kWarps;
  const float scale = value_scale<C>(params, item.kv_head);
  for (int i = static_cast<int>(threadIdx.x); i < kMergeRows * kDim / 4; i += 32 * kWarps) {
    const int row = i / (kDim / 4);
    const int column = i % (kDim / 4) * 4;
    const int head = first_head + row;
    if (head >= params.group || column >= params.head_dim) continue;
    const float sink = item.partial < 0 ? sink_of(params, item.kv_head, head) : kMinusInfinity;
    float largest = sink;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, states[w][row].largest);
    float sum = weight_of(sink, largest);
    Vector<float, 4> out = {};
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float weight = weight_of(states[w][row].largest, largest);
      sum = fmaf(weight, states[w][row].sum, sum);
      const auto part = load<float, 4>(sums[w] + HeadRows<T, C, kDim>::place(row, column));
#pragma unroll
      for (int j = 0; j < 4; ++j) out.at[j] = fmaf(weight, part.at[j], out.at[j]);
    }
    if (item.partial < 0) {
      Vector<T, 4> rounded;
#pragma unroll
      for (int j = 0; j < 4; ++j) rounded.at[j] = from_float<T>(__fdividef(out.at[j] * scale, sum));
      T* const to = static_cast<T*>(params.out) + out_row * params.out_stride +
                    (static_cast<int64_t>(item.kv_head) * params.group + head) * params.head_dim;
      store(to + column, rounded);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) out.at[j] *= scale;
      float* const to =
          params.partials + item.partial * partial_floats(params.group, params.head_dim);
      store(to + head * params.head_dim + column, out);
      if (column == 0) {
        store(to + params.group * params.head_dim + 2 * head, Vector<float, 2>{{largest, sum}});
      }
    }
  }
}

template <typename T, typename C, int kDim>
__global__ void __launch_bounds__(32 * DecodeShape<C, kDim>::kWarps, 2)
    attention_decode(const __grid_constant__ AttentionParams params) {
  using Shape = DecodeShape<C, kDim>;
  __shared__ MergeState states[Shape::kWarps][kMergeRows];
  wait_for_previous_kernel();
  launch_next_kernel();
  const int32_t first_item = params.plan.block_begin[blockIdx.x];
  const int32_t end_item = params.plan.block_begin[blockIdx.x + 1];
  if (first_item >= end_item) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const auto slice_at = [&](int of_warp, int stage) {
    return dynamic_shared() + (of_warp * Shape::kStages + stage) * Shape::kSliceBytes;
  };
  __shared__ int32_t free_stages[Shape::kWarps];

  SliceLoader<C, kDim> loader(params, first_item, end_item, warp, lane);
  for (int i = 0; i < Shape::kStages - 1; ++i) loader.load(slice_at(warp, i));
  int stage = 0;                        // to be worked on next
  int free_stage = Shape::kStages - 1;  // the one before it

  for (int32_t i = first_item; i < end_item; ++i) {
    const DecodeItem item = item_of(params, i, static_cast<int32_t>(blockIdx.y));
    const SequenceRows sequence = params.plan.sequences[item.sequence];
    const Span span = visible_span(item, sequence, params);
    const ScoreScale scale = with_key_scale<C>(params, item.kv_head);
    for (int first_head = 0; first_head < params.group; first_head += kHeadRows) {
      HeadRows<T, C, kDim> rows;
      const int num_heads = min(kHeadRows, params.group - first_head);
      const bool has_upper = num_heads > 8;
      const HeadSlopes slopes = {.slopes = params.alibi_slopes,
                                 .first_head = item.kv_head * params.group + first_head,
                                 .num_heads = num_heads,
                                 .position = sequence.context_len - 1};
      rows.start(
          static_cast<const T*>(params.q) + sequence.first_row * params.q_stride +
              (static_cast<int64_t>(item.kv_head) * params.group + first_head) * params.head_dim,
          num_heads, params.head_dim, lane);
      for (int32_t token = span.first_slice + kSlice * warp; token < span.end;
           token += kSlice * Shape::kWarps) {
        loader.load(slice_at(warp, free_stage));
        cp_async_wait<Shape::kStages - 1>();
        __syncwarp();
        rows.attend(slice_at(warp, stage), token, span, scale, slopes, has_upper, lane);
        __syncwarp();
        free_stage = stage;
        stage = stage + 1 == Shape::kStages ? 0 : stage + 1;
      }
      for (int half = 0; half < (has_upper ? 2 : 1); ++half) {
        rows.store_half(reinterpret_cast<float*>(slice_at(warp, free_stage)), half, lane);
        const float sum = row_sum(half == 0 ? rows.softmax.sum[0] : rows.softmax.sum[1]);
        const float largest = half == 0 ? rows.softmax.largest[0] : rows.softmax.largest[1];
        if (lane % 4 == 0) {
          states[warp][lane / 4] = {.largest = largest * remaining_multiplier(scale), .sum = sum};
        }
        if (lane == 0) free_stages[warp] = free_stage;
        __syncthreads();
        const float* sums[Shape::kWarps];
#pragma unroll
        for (int w = 0; w < Shape::kWarps; ++w) {
          sums[w] = reinterpret_cast<const float*>(slice_at(w, free_stages[w]));
        }
        merge_warps<T, C, kDim>(params, item, sequence.first_row, first_head + kMergeRows * half,
                                sums, states);
        __syncthreads();
      }
    }
  }
  cp_async_wait<0>();
}

// Calls use(kernel, threads, shared_bytes).
template <typename T, typename Use>
void with_decode_kernel(bool cache_is_f8, int32_t head_dim, Use use) {
  with_head_dim(head_dim, [&](auto dim) {
    constexpr int kDim = decltype(dim)::value;
    const auto use_cache = [&](auto stored) {
      using C = decltype(stored);
      using Shape = DecodeShape<C, kDim>;
      use(attention_decode<T, C, kDim>, 32 * Shape::kWarps, Shape::kSharedBytes);
    };
    if (cache_is_f8) {
      use_cache(f8{});
    } else {
      use_cache(T{});
    }
  });
}

}  // namespace

void launch_attention_decode(cudaStream_t stream,
                             DType dtype,
                             bool cache_is_f8,
                             int32_t num_blocks,
                             const AttentionParams& params) {
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    with_decode_kernel<T>(cache_is_f8, params.head_dim, [&](auto kernel, int threads, int shared) {
      launch(stream,
             {.grid = dim3(static_cast<unsigned>(num_blocks),
                           static_cast<unsigned>(params.heads_of_item)),
              .block = dim3(static_cast<unsigned>(threads)),
              .shared_bytes = static_cast<size_t>(shared),
              .overlaps_previous = true},
             kernel, params);
    });
  });
}

void prepare_attention_decode() {
  for (const int32_t head_dim : {64, 96, 128, 256}) {
    for (const bool cache_is_f8 : {false, true}) {
      const auto allow = [](auto kernel, int, int shared) {
        allow_shared(kernel, static_cast<size_t>(shared));
      };
      with_decode_kernel<bf16>(cache_is_f8, head_dim, allow);
      with_decode_kernel<f16>(cache_is_f8, head_dim, allow);
    }
  }
}

int64_t max_decode_shared_bytes() {
  // 1 KiB of each block is the driver's; states and free_stages take less than another.
  return kRingBytes + (2 << 10);
}

}  // namespace tgi::cuda
