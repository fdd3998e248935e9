// Attention of sequences with several queries (FlashAttention-2): a block takes a tile of 64
// queries for one head or, where it can, for two heads that read the same keys and values, and goes
// through the context in tiles of kKeys tokens, two of them in shared memory. Each of the 4 warps
// has 16 queries of each head.
//
// Two heads rather than one: a fragment of keys or values read from shared memory then serves two
// mma, else shared memory (2 clocks for each mma's 256 bytes) is slower than the tensor cores, and
// L2 is asked for half as much. Blocks of one kv head are neighbours, so that they share L2.
//
// Tiles begin at multiples of kKeys from position 0 and come in order; a tile in which all of a
// row's scores are masked leaves its sums exactly as they were. So the bits of a row do not depend
// on the chunk that it is computed in, nor on its place there.
#include "base/error.h"
#include "cuda/kernels/attention_tiles.cuh"
#include "cuda/kernels/dispatch.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarpQueries = 16;
static_assert(kPrefillQueryTile == kThreads / 32 * kWarpQueries);

// Shared memory: queries | keys, values of the tiles at work | stored keys, values (f8).
template <typename T, typename C, int kDim, int kHeads>
struct PrefillShape {
  static constexpr bool kConverts = sizeof(C) != sizeof(T);
  static constexpr int kKeys = kDim <= 128 ? 64 : 32;  // so that two blocks fit an SM of sm_90
  static constexpr int kRowBytes = kDim * static_cast<int>(sizeof(T));
  static constexpr int kStoredRowBytes = kDim * static_cast<int>(sizeof(C));
  static constexpr int kTileBytes = kKeys * kRowBytes;
  static constexpr int kStoredTileBytes = kKeys * kStoredRowBytes;
  static constexpr int kQueryBytes = kHeads * kPrefillQueryTile * kRowBytes;
  static constexpr int kNumTiles = kConverts ? 1 : 2;  // of keys and values each, ready for mma
  static constexpr int kStoredAt = kQueryBytes + 2 * kNumTiles * kTileBytes;
  static constexpr int kSharedBytes = kStoredAt + (kConverts ? 4 * kStoredTileBytes : 0);
};

// What a block computes. Positions count from the start of the sequence's context.
struct QueryTile {
  int32_t first_row;       // of the step's tokens
  int32_t first_position;  // of query 0
  int32_t end;             // of the context that the last query sees
  int32_t begin;           // first tile of it that any query sees
};

template <int kKeys>
__device__ __forceinline__ QueryTile query_tile(const AttentionParams& params,
                                                const SequenceRows& sequence,
                                                const PrefillTile& tile) {
  QueryTile out;
  out.first_row = sequence.first_row + tile.first_query;
  out.first_position = sequence.context_len - sequence.num_rows + tile.first_query;
  out.end = out.first_position + min(kPrefillQueryTile, sequence.num_rows - tile.first_query);
  out.begin =
      first_seen(out.first_position, params.sliding_window, params.attention_chunk) / kKeys * kKeys;
  return out;
}

template <typename T, typename C, int kDim, int kHeads>
class PrefillBlock {
  using Shape = PrefillShape<T, C, kDim, kHeads>;
  using Rows = SharedRows<Shape::kRowBytes>;
  using StoredRows = SharedRows<Shape::kStoredRowBytes>;
  static constexpr int kKeys = Shape::kKeys;

 public:
  __device__ __forceinline__ PrefillBlock(const AttentionParams& params,
                                          const PrefillTile& tile,
                                          int first_head)
      : params_(params), first_head_(first_head), thread_(static_cast<int>(threadIdx.x)) {
    const SequenceRows sequence = params.plan.sequences[tile.sequence];
    tile_ = query_tile<kKeys>(params, sequence, tile);
    context_ = context_rows(params, sequence, first_head / params.group, tile_.end);
    next_row_ = context_.row_of(tile_.begin + thread_ % (kKeys / 8) * 8);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
#pragma unroll
      for (int i = 0; i < kDim / 2; ++i) sums_[h][i / 4][i % 4] = 0.0F;
    }
  }

  __device__ __forceinline__ void run() {
    load_queries();
    load_tile(tile_.begin, 0);
    const ScoreScale scale = with_key_scale<C>(params_, context_.kv_head);
    int stage = 0;
    for (int32_t token = tile_.begin; token < tile_.end; token += kKeys) {
      cp_async_wait<0>();
      __syncthreads();  // the tile is there, and nobody works on the one before it any more
      if (token + kKeys < tile_.end) load_tile(token + kKeys, stage ^ 1);
      if constexpr (Shape::kConverts) {
        convert(stored_tile(stage, 0), work_tile(0, 0));
        convert(stored_tile(stage, 1), work_tile(0, 1));
        __syncthreads();
      }
      if (sees(token)) attend(token, Shape::kConverts ? 0 : stage, scale);
      stage ^= 1;
    }
    write();
  }

 private:
  __device__ __forceinline__ int lane() const {
    return thread_ % 32;
  }
  __device__ __forceinline__ int first_query() const {
    return thread_ / 32 * kWarpQueries;
  }
  // How many queries the block has, up to kPrefillQueryTile.
  __device__ __forceinline__ int32_t num_queries() const {
    return tile_.end - tile_.first_position;
  }
  // The positions of the warp's first and last query; the last may be past the block's end.
  __device__ __forceinline__ int32_t first_position() const {
    return tile_.first_position + first_query();
  }
  __device__ __forceinline__ int32_t last_position() const {
    return first_position() + kWarpQueries - 1;
  }

  // kind 0: keys, 1: values
  __device__ __forceinline__ std::byte* work_tile(int stage, int kind) const {
    return dynamic_shared() + Shape::kQueryBytes + (2 * stage + kind) * Shape::kTileBytes;
  }
  __device__ __forceinline__ std::byte* stored_tile(int stage, int kind) const {
    if constexpr (!Shape::kConverts) return work_tile(stage, kind);
    return dynamic_shared() + Shape::kStoredAt + (2 * stage + kind) * Shape::kStoredTileBytes;
  }

  __device__ __forceinline__ void load_queries() const {
    constexpr int kRowsOfHeads = kHeads * kPrefillQueryTile;
    const T* const q = static_cast<const T*>(params_.q) + tile_.first_row * params_.q_stride +
                       static_cast<int64_t>(first_head_) * params_.head_dim;
#pragma unroll 4
    for (int i = thread_; i < kRowsOfHeads * Rows::kChunks; i += kThreads) {
      const int row = i / Rows::kChunks;
      const int chunk = i % Rows::kChunks;
      const int query = row % kPrefillQueryTile;
      const bool valid = query < num_queries() && chunk * 8 < params_.head_dim;
      const T* const from =
          q + query * params_.q_stride + row / kPrefillQueryTile * params_.head_dim + chunk * 8;
      cp_async_16(dynamic_shared() + Rows::offset(row, chunk), valid ? from : q, valid);
    }
  }

  // Starts the copy of the tile, and looks up where the next one is.
  __device__ __forceinline__ void load_tile(int32_t token, int stage) {
    const int num_rows = tile_.end - token;
    const int row_bytes = params_.head_dim * static_cast<int>(sizeof(C));
    copy_rows<kKeys, Shape::kStoredRowBytes, kThreads>(stored_tile(stage, 0), params_.cache.keys,
                                                       next_row_, thread_, num_rows, row_bytes);
    copy_rows<kKeys, Shape::kStoredRowBytes, kThreads>(stored_tile(stage, 1), params_.cache.values,
                                                       next_row_, thread_, num_rows, row_bytes);
    cp_async_commit();
    next_row_ = context_.row_of(token + kKeys + thread_ % (kKeys / 8) * 8);
  }

  __device__ __forceinline__ void convert(const std::byte* from, std::byte* to) const {
#pragma unroll
    for (int i = thread_; i < kKeys * StoredRows::kChunks; i += kThreads) {
      const int row = i / StoredRows::kChunks;
      const int chunk = i % StoredRows::kChunks;
      const auto stored = load<uint32_t, 4>(
          reinterpret_cast<const uint32_t*>(from + StoredRows::offset(row, chunk)));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Vector<uint32_t, 4> out;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          out.at[2 * j] = pair_of_f8<T, 0, 1>(stored.at[2 * half + j]);
          out.at[2 * j + 1] = pair_of_f8<T, 2, 3>(stored.at[2 * half + j]);
        }
        store(reinterpret_cast<uint32_t*>(to + Rows::offset(row, 2 * chunk + half)), out);
      }
    }
  }

  __device__ __forceinline__ int32_t first_seen_of(int32_t position) const {
    return first_seen(position, params_.sliding_window, params_.attention_chunk);
  }
  // Whether any query of the warp sees a token of the tile.
  __device__ __forceinline__ bool sees(int32_t token) const {
    if (first_query() >= num_queries() || token > last_position()) return false;
    return token + kKeys > first_seen_of(first_position());
  }

  __device__ __forceinline__ void attend(int32_t token, int stage, const ScoreScale& scale) {
    float scores[kHeads][kKeys / 8][4] = {};
    score(work_tile(stage, 0), scores);
    const bool is_cut =
        token + kKeys - 1 > first_position() || token < first_seen_of(last_position());
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      apply_softcap(scale, scores[h]);
      if (scale.has_alibi) {
        const float slope = params_.alibi_slopes[first_head_ + h];
        const int32_t position = first_position() + lane() / 4;
        add_alibi(scale, {slope, slope}, {position, position + 8}, token + lane() % 4 * 2,
                  scores[h]);
      }
      if (is_cut) mask(token, scores[h]);
      float rescale[2];
      online_softmax(remaining_multiplier(scale), true, scores[h], softmax_[h], rescale);
      rescale_rows(rescale, sums_[h]);
    }
    add_values(work_tile(stage, 1), scores);
  }

  __device__ __forceinline__ void score(const std::byte* keys,
                                        float (&scores)[kHeads][kKeys / 8][4]) const {
    const int matrix = lane() / 8;
    const int query_at = Rows::offset(first_query() + lane() % 8 + matrix % 2 * 8, matrix / 2);
    const int key_at = Rows::offset(lane() % 8 + matrix / 2 * 8, matrix % 2);
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      uint32_t q[kHeads][4];
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        ldmatrix_x4(q[h],
                    dynamic_shared() + Rows::ahead(query_at, h * kPrefillQueryTile, 2 * step));
      }
#pragma unroll
      for (int n = 0; n < kKeys / 8; n += 2) {
        uint32_t k[4];
        ldmatrix_x4(k, keys + Rows::ahead(key_at, 8 * n, 2 * step));
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
          mma_16x8x16<T>(scores[h][n], q[h], {k[0], k[1]});
          mma_16x8x16<T>(scores[h][n + 1], q[h], {k[2], k[3]});
        }
      }
    }
  }

  __device__ __forceinline__ void mask(int32_t token, float (&scores)[kKeys / 8][4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int32_t position = first_position() + lane() / 4 + 8 * half;
      const int32_t first = first_seen_of(position);
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int32_t key = token + 8 * n + lane() % 4 * 2 + j;
          if (key > position || key < first) scores[n][2 * half + j] = kMinusInfinity;
        }
      }
    }
  }

  __device__ __forceinline__ void add_values(const std::byte* values,
                                             const float (&weights)[kHeads][kKeys / 8][4]) {
    const int matrix = lane() / 8;
    const int value_at = Rows::offset(lane() % 8 + matrix % 2 * 8, matrix / 2);
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      uint32_t p[kHeads][4];
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float(&pair)[4] = weights[h][2 * step + i / 2];
          p[h][i] = pack<T>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
        }
      }
#pragma unroll
      for (int n = 0; n < kDim / 8; n += 2) {
        uint32_t v[4];
        ldmatrix_x4_transposed(v, values + Rows::ahead(value_at, 16 * step, n));
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
          mma_16x8x16<T>(sums_[h][n], p[h], {v[0], v[1]});
          mma_16x8x16<T>(sums_[h][n + 1], p[h], {v[2], v[3]});
        }
      }
    }
  }

  // Through the warp's own rows of the queries, which nobody needs any more, so that whole lines
  // are written.
  __device__ __forceinline__ void write() const {
    const float scale = value_scale<C>(params_, context_.kv_head);
    const float to_log2 = remaining_multiplier(with_key_scale<C>(params_, context_.kv_head));
    T* const out = static_cast<T*>(params_.out) + tile_.first_row * params_.out_stride +
                   static_cast<int64_t>(first_head_) * params_.head_dim;
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      const float sink = sink_of(params_, context_.kv_head, first_head_ % params_.group + h);
      const int row_at = Rows::offset(h * kPrefillQueryTile + first_query() + lane() / 4, 0);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float factor = scale;
        float sum = row_sum(softmax_[h].sum[half]);
        if (sink != kMinusInfinity) {
          const float own = softmax_[h].largest[half] * to_log2;
          const float largest = fmaxf(own, sink);
          factor *= weight_of(own, largest);
          sum = fmaf(sum, weight_of(own, largest), weight_of(sink, largest));
        }
        factor = __fdividef(factor, sum);
#pragma unroll
        for (int n = 0; n < kDim / 8; ++n) {
          const uint32_t pair =
              pack<T>(sums_[h][n][2 * half] * factor, sums_[h][n][2 * half + 1] * factor);
          std::byte* const to = dynamic_shared() + Rows::ahead(row_at, 8 * half, n);
          *reinterpret_cast<uint32_t*>(to + lane() % 4 * 4) = pair;
        }
      }
    }
    __syncwarp();
    for (int i = lane(); i < kHeads * kWarpQueries * Rows::kChunks; i += 32) {
      const int head = i / (kWarpQueries * Rows::kChunks);
      const int query = first_query() + i / Rows::kChunks % kWarpQueries;
      const int chunk = i % Rows::kChunks;
      if (query >= num_queries() || chunk * 8 >= params_.head_dim) continue;
      const auto* const from = reinterpret_cast<const T*>(
          dynamic_shared() + Rows::offset(head * kPrefillQueryTile + query, chunk));
      store(out + query * params_.out_stride + head * params_.head_dim + chunk * 8,
            load<T, 8>(from));
    }
  }

  const AttentionParams& params_;
  const int first_head_;
  const int thread_;
  QueryTile tile_;
  ContextRows context_;
  int32_t next_row_;  // of the cache: of the thread's group of 8 tokens of the next tile
  float sums_[kHeads][kDim / 8][4];
  SoftmaxRows softmax_[kHeads];
};

template <typename T, typename C, int kDim, int kHeads>
__global__ void __launch_bounds__(kThreads, 2)
    attention_prefill(const __grid_constant__ AttentionParams params) {
  wait_for_previous_kernel();
  launch_next_kernel();
  PrefillBlock<T, C, kDim, kHeads> block(params, params.plan.tiles[blockIdx.y],
                                         static_cast<int>(blockIdx.x) * kHeads);
  block.run();
}

// Calls use(kernel, heads of a block, shared_bytes).
template <typename T, typename Use>
void with_prefill_kernel(bool cache_is_f8, int32_t head_dim, int32_t group, Use use) {
  with_head_dim(head_dim, [&](auto dim) {
    constexpr int kDim = decltype(dim)::value;
    const auto use_heads = [&](auto stored, auto heads) {
      using C = decltype(stored);
      constexpr int kHeads = decltype(heads)::value;
      use(attention_prefill<T, C, kDim, kHeads>, kHeads,
          PrefillShape<T, C, kDim, kHeads>::kSharedBytes);
    };
    const auto use_cache = [&](auto stored) {
      // The sums of two heads of 256 would not fit the registers.
      if constexpr (kDim <= 128) {
        if (group % 2 == 0) return use_heads(stored, std::integral_constant<int, 2>{});
      }
      use_heads(stored, std::integral_constant<int, 1>{});
    };
    if (cache_is_f8) {
      use_cache(f8{});
    } else {
      use_cache(T{});
    }
  });
}

}  // namespace

void launch_attention_prefill(cudaStream_t stream,
                              DType dtype,
                              bool cache_is_f8,
                              int32_t num_tiles,
                              const AttentionParams& params) {
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    with_prefill_kernel<T>(cache_is_f8, params.head_dim, params.group,
                           [&](auto kernel, int heads, int shared) {
                             const int num_heads = params.num_kv_heads * params.group;
                             launch(stream,
                                    {.grid = dim3(static_cast<unsigned>(num_heads / heads),
                                                  static_cast<unsigned>(num_tiles)),
                                     .block = dim3(kThreads),
                                     .shared_bytes = static_cast<size_t>(shared),
                                     .overlaps_previous = true},
                                    kernel, params);
                           });
  });
}

void prepare_attention_prefill() {
  for (const int32_t head_dim : {64, 96, 128, 256}) {
    for (const bool cache_is_f8 : {false, true}) {
      for (const int32_t group : {1, 2}) {
        const auto allow = [](auto kernel, int, int shared) {
          allow_shared(kernel, static_cast<size_t>(shared));
        };
        with_prefill_kernel<bf16>(cache_is_f8, head_dim, group, allow);
        with_prefill_kernel<f16>(cache_is_f8, head_dim, group, allow);
      }
    }
  }
}

}  // namespace tgi::cuda
