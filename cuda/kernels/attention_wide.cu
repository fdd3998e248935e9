// Attention of heads of more than 256 columns, whose queries and sums are more than a warp can
// hold: a CUDA block has the queries of one kv head in shared memory, up to 16 * kTiles rows of
// (query, head), and goes through the context in tiles of 32 tokens. Of a tile each of the 8 warps
// scores 8 tokens over half of the columns, then sums every eighth group of 8 columns of the
// values. Keys of the next tile are on their way while values are summed, and the other way round.
//
// Sequences with one query are cut along the context into equal pieces, which are merged in order.
// Tiles begin at multiples of 32 tokens from position 0 and come in order; a tile in which all of
// a row's scores are masked leaves its sums exactly as they were. So the bits of a row of a context
// that is not cut depend neither on the rows beside it nor on kTiles.
#include <algorithm>
#include <type_traits>

#include "base/error.h"
#include "cuda/kernels/attention_wide_block.cuh"
#include "cuda/kernels/dispatch.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kManyTiles = 4;  // of 16 rows, where shared memory has room for them
constexpr int kMaxSplits = 64;
constexpr int kMergeThreads = 128;

template <typename T, typename C, int kTiles>
__global__ void __launch_bounds__(kWideThreads, kTiles == 1 ? 2 : 1)
    attention_wide(const __grid_constant__ WideParams params) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const WideRows rows = wide_rows<kTiles>(params);
  if (rows.num_rows <= 0) return;
  WideBlock<T, C, kTiles>(params, rows).run();
}

// Block (sequence, head): the pieces of its context, in order.
template <typename T>
__global__ void merge_wide(const __grid_constant__ WideParams params) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const AttentionParams& attention = params.attention;
  const SequenceRows sequence = attention.plan.sequences[blockIdx.x];
  if (sequence.num_rows != 1) return;
  const auto head = static_cast<int32_t>(blockIdx.y);
  const int32_t kv_head = head / attention.group;
  const int32_t row = head % attention.group;
  const int32_t piece = kv_head * pieces_of(attention.group, 16) + row / 16;
  const float* const first = partial_at(params, blockIdx.x, piece, 0);
  const float* const states = first + 16 * attention.head_dim + row % 16 * 2;
  const int64_t size = wide_partial_size(attention.head_dim);
  const float sink = sink_of(attention, kv_head, row);
  float largest = sink;
  for (int32_t i = 0; i < params.num_splits; ++i) largest = fmaxf(largest, states[i * size]);
  T* const to = static_cast<T*>(attention.out) + sequence.first_row * attention.out_stride +
                int64_t{head} * attention.head_dim;
  for (auto column = static_cast<int32_t>(threadIdx.x) * 2; column < attention.head_dim;
       column += kMergeThreads * 2) {
    Vector<float, 2> out = {};
    float sum = weight_of(sink, largest);
    for (int32_t i = 0; i < params.num_splits; ++i) {
      const float weight = weight_of(states[i * size], largest);
      sum = fmaf(weight, states[i * size + 1], sum);
      const auto part = load<float, 2>(first + i * size + row % 16 * attention.head_dim + column);
#pragma unroll
      for (int j = 0; j < 2; ++j) out.at[j] = fmaf(weight, part.at[j], out.at[j]);
    }
    store(to + column, Vector<T, 2>{{from_float<T>(__fdividef(out.at[0], sum)),
                                     from_float<T>(__fdividef(out.at[1], sum))}});
  }
}

// Calls use(T{}, C{}).
template <typename Use>
void with_types(DType dtype, bool cache_is_f8, Use use) {
  with_element(dtype, [&](auto element) {
    if (cache_is_f8) {
      use(element, f8{});
    } else {
      use(element, element);
    }
  });
}

bool has_room_for_many(int64_t shared_bytes_of_multiprocessor) {
  // 1 KiB of each block is the driver's.
  return WideLayout<kManyTiles>(kMaxAttentionDim).size + 1024 <= shared_bytes_of_multiprocessor;
}

}  // namespace

int32_t wide_splits(int32_t num_sequences,
                    int32_t group,
                    int32_t num_kv_heads,
                    int32_t num_blocks) {
  const int64_t each = int64_t{num_kv_heads} * pieces_of(group, 16);
  const int64_t wanted = num_blocks / std::max<int64_t>(num_sequences * each, 1);
  return static_cast<int32_t>(std::clamp<int64_t>(wanted, 1, kMaxSplits));
}

int64_t wide_partial_floats(int32_t num_blocks, int32_t head_dim) {
  return num_blocks * wide_partial_size(head_dim);
}

void prepare_attention_wide(int64_t shared_bytes_of_multiprocessor) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const bool cache_is_f8 : {false, true}) {
      with_types(dtype, cache_is_f8, [&](auto element, auto stored) {
        using T = decltype(element);
        using C = decltype(stored);
        allow_shared(attention_wide<T, C, 1>, WideLayout<1>(kMaxAttentionDim).size);
        if (!has_room_for_many(shared_bytes_of_multiprocessor)) return;
        allow_shared(attention_wide<T, C, kManyTiles>,
                     WideLayout<kManyTiles>(kMaxAttentionDim).size);
      });
    }
  }
}

void launch_attention_wide(cudaStream_t stream,
                           DType dtype,
                           bool cache_is_f8,
                           const AttentionParams& attention,
                           const WideAttention& wide) {
  const auto launch_blocks = [&](auto tiles, int32_t num, int32_t num_queries, int32_t num_splits) {
    constexpr int kTiles = decltype(tiles)::value;
    const int32_t pieces = pieces_of(num_queries * attention.group, 16 * kTiles);
    with_types(dtype, cache_is_f8, [&](auto element, auto stored) {
      using T = decltype(element);
      using C = decltype(stored);
      launch(stream,
             {.grid = dim3(static_cast<unsigned>(num * std::max(num_splits, 1)),
                           static_cast<unsigned>(attention.num_kv_heads * pieces)),
              .block = dim3(kWideThreads),
              .shared_bytes = static_cast<size_t>(WideLayout<kTiles>(attention.head_dim).size),
              .overlaps_previous = true},
             attention_wide<T, C, kTiles>, WideParams{attention, num_splits});
    });
  };
  using OneTile = std::integral_constant<int, 1>;
  using ManyTiles = std::integral_constant<int, kManyTiles>;
  if (wide.num_tiles > 0) {
    if (has_room_for_many(wide.shared_bytes_of_multiprocessor)) {
      launch_blocks(ManyTiles{}, wide.num_tiles, kPrefillQueryTile, 0);
    } else {
      launch_blocks(OneTile{}, wide.num_tiles, kPrefillQueryTile, 0);
    }
  }
  if (wide.num_sequences == 0) return;
  launch_blocks(OneTile{}, wide.num_sequences, 1, wide.num_splits);
  if (wide.num_splits == 1) return;
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    launch(stream,
           {.grid = dim3(static_cast<unsigned>(wide.num_sequences),
                         static_cast<unsigned>(attention.num_kv_heads * attention.group)),
            .block = dim3(kMergeThreads),
            .shared_bytes = 0,
            .overlaps_previous = true},
           merge_wide<T>, WideParams{attention, wide.num_splits});
  });
}

}  // namespace tgi::cuda
