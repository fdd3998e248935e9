// Attention to latents. A CUDA block takes 16 heads of one token, which all read the same keys, and
// a piece of the context in tiles of 32 tokens, two of them in shared memory. Of a tile each of the
// 8 warps scores 8 tokens over half of the columns, then sums 64 columns of the values, which are
// the keys' first columns: what was read for the scores serves again.
//
// Tiles begin at multiples of 32 tokens from position 0 and come in order.
#include <algorithm>
#include <string>

#include "base/error.h"
#include "cuda/kernels/attention_tiles.cuh"
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/latent.h"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/reduce.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kHeads = 16;   // of a CUDA block: the rows of an mma
constexpr int kTokens = 32;  // of a tile
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kPadding = 8;  // elements after a row, so that ldmatrix meets no bank twice
constexpr int kWeightStride = kTokens + kPadding;
constexpr int kScoreStride = kTokens + 4;
constexpr int kValueTiles = kMaxLatentDim / 8 / kWarps;  // of a warp: mma tiles of 8 columns
constexpr int kMaxSplits = 64;
constexpr int kMergeThreads = 128;

struct LatentParams {
  const void* q;
  int64_t q_stride;
  void* out;
  int64_t out_stride;
  LatentAttentionLaunch launch;
  int32_t num_heads;
  int32_t key_dim;
  int32_t latent_dim;
  int32_t sliding_window;
  int32_t attention_chunk;
  ScoreScale score;
  const float* sinks;  // (num_heads), or null
};

constexpr int64_t partial_size(int32_t latent_dim) {
  return int64_t{kHeads} * latent_dim + 2 * kHeads;
}

constexpr int num_groups(int32_t num_heads) {
  return (num_heads + kHeads - 1) / kHeads;
}

// Queries | two tiles of keys | weights | scores of both halves of the columns | rescale, sums.
struct SharedLayout {
  int32_t row_stride;                                       // elements
  int32_t keys_at, weights_at, scores_at, states_at, size;  // bytes

  __host__ __device__ explicit constexpr SharedLayout(int32_t cache_dim)
      : row_stride(cache_dim + kPadding),
        keys_at(kHeads * row_stride * 2),
        weights_at(keys_at + 2 * kTokens * row_stride * 2),
        scores_at(weights_at + kHeads * kWeightStride * 2),
        states_at(scores_at + 2 * kHeads * kScoreStride * 4),
        size(states_at + 2 * kHeads * 4) {}
};

template <typename T>
class LatentBlock {
 public:
  __device__ __forceinline__ explicit LatentBlock(const LatentParams& params)
      : params_(params),
        shared_(params.launch.cache_dim),
        lane_(static_cast<int>(threadIdx.x % 32)),
        warp_(static_cast<int>(threadIdx.x / 32)),
        row_(blockIdx.x / params.launch.num_splits),
        split_(static_cast<int32_t>(blockIdx.x % params.launch.num_splits)),
        first_head_(static_cast<int32_t>(blockIdx.y) * kHeads),
        token_(params.launch.rows[row_]) {
    const int32_t last = token_.context_index;
    first_seen_ = first_seen(last, params.sliding_window, params.attention_chunk);
    const int32_t first_tile = first_seen_ / kTokens;
    const int32_t num_tiles = last / kTokens + 1 - first_tile;
    const int32_t each = (num_tiles + params.launch.num_splits - 1) / params.launch.num_splits;
    begin_ = first_tile + split_ * each;
    end_ = min(begin_ + each, first_tile + num_tiles);
    if (params.sinks != nullptr && split_ == 0) begin_with_sinks();
  }

  __device__ __forceinline__ void run() {
    if (begin_ < end_) load(begin_, 0);
    load_queries();
    int place = 0;
    for (int32_t tile = begin_; tile < end_; ++tile) {
      cp_async_wait<0>();
      __syncthreads();  // the tile is there, and nobody works on the one before it any more
      if (tile + 1 < end_) load(tile + 1, place ^ 1);
      score(place);
      __syncthreads();
      weigh(tile);
      __syncthreads();
      sum_values(place);
      place ^= 1;
    }
    write();
  }

 private:
  // As if a token without a value had been seen.
  __device__ __forceinline__ void begin_with_sinks() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int head = first_head_ + 2 * warp_ + i;
      if (head >= params_.num_heads) continue;
      largest_[i] = params_.sinks[head] * kLog2E;
      sum_[i] = 1.0F;
    }
  }

  __device__ __forceinline__ T* queries() const {
    return reinterpret_cast<T*>(dynamic_shared());
  }
  __device__ __forceinline__ T* keys(int place) const {
    return reinterpret_cast<T*>(dynamic_shared() + shared_.keys_at) +
           place * kTokens * shared_.row_stride;
  }
  __device__ __forceinline__ T* weights() const {
    return reinterpret_cast<T*>(dynamic_shared() + shared_.weights_at);
  }
  __device__ __forceinline__ float* scores(int half) const {
    return reinterpret_cast<float*>(dynamic_shared() + shared_.scores_at) +
           half * kHeads * kScoreStride;
  }
  __device__ __forceinline__ float* rescale() const {
    return reinterpret_cast<float*>(dynamic_shared() + shared_.states_at);
  }
  __device__ __forceinline__ float* sums() const {
    return rescale() + kHeads;
  }

  // A warp takes every eighth row. Tokens past the last are zeros: what lies there may be NaN.
  __device__ __forceinline__ void load(int32_t tile, int place) const {
    const LatentAttentionLaunch& launch = params_.launch;
    const int32_t* const table = launch.block_tables + int64_t{token_.slot} * launch.max_blocks;
    for (int i = warp_; i < kTokens; i += kWarps) {
      const int32_t index = tile * kTokens + i;
      const bool is_there = index <= token_.context_index;
      const int32_t block = is_there ? table[index / launch.block_size] : 0;
      const T* const from =
          static_cast<const T*>(launch.keys) +
          (int64_t{block} * launch.block_size + index % launch.block_size) * launch.cache_dim;
      T* const to = keys(place) + i * shared_.row_stride;
      for (int at = lane_ * 8; at < launch.cache_dim; at += 32 * 8) {
        cp_async_16(to + at, from + at, is_there);
      }
    }
    cp_async_commit();
  }

  __device__ __forceinline__ void load_queries() const {
    for (int h = warp_; h < kHeads; h += kWarps) {
      const bool is_there = first_head_ + h < params_.num_heads;
      const T* const from = static_cast<const T*>(params_.q) + row_ * params_.q_stride +
                            int64_t{first_head_ + h} * params_.key_dim;
      for (int d = lane_; d < params_.launch.cache_dim; d += 32) {
        queries()[h * shared_.row_stride + d] =
            is_there && d < params_.key_dim ? from[d] : from_float<T>(0.0F);
      }
    }
  }

  __device__ __forceinline__ void score(int place) const {
    const int num_steps = params_.launch.cache_dim / 16;
    const int first_half = (num_steps / 2 + 1) / 2 * 2;  // steps come in pairs
    const int half = warp_ / 4;
    const int end = half == 0 ? first_half : num_steps;
    const T* const q = queries() + lane_ % 16 * shared_.row_stride + lane_ / 16 * 8;
    const T* const k =
        keys(place) + (warp_ % 4 * 8 + lane_ % 8) * shared_.row_stride + lane_ / 8 * 8;
    float sums[4] = {};
    for (int step = half == 0 ? 0 : first_half; step < end; step += 2) {
      uint32_t from_q[4];
      uint32_t from_k[4];
      ldmatrix_x4(from_q, q + step * 16);
      ldmatrix_x4(from_k, k + step * 16);
      mma_16x8x16<T>(sums, from_q, {from_k[0], from_k[1]});
      if (step + 1 == end) break;
      ldmatrix_x4(from_q, q + step * 16 + 16);
      mma_16x8x16<T>(sums, from_q, {from_k[2], from_k[3]});
    }
    float* const to = scores(half) + lane_ / 4 * kScoreStride + warp_ % 4 * 8 + lane_ % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i / 2 * 8 * kScoreStride + i % 2] = sums[i];
  }

  __device__ __forceinline__ float scaled(float x) const {
    const ScoreScale& scale = params_.score;
    return scale.cap_log2 == 0.0F ? x * scale.multiplier : softcapped(scale, x);
  }

  // Each warp has two heads, each lane a token.
  __device__ __forceinline__ void weigh(int32_t tile) {
    const int32_t index = tile * kTokens + lane_;
    const bool is_seen = index >= first_seen_ && index <= token_.context_index;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int head = 2 * warp_ + i;
      const int at = head * kScoreStride + lane_;
      const float score = is_seen ? scaled(scores(0)[at] + scores(1)[at]) : kMinusInfinity;
      const SoftmaxStep step = softmax_step(score, is_seen, largest_[i], sum_[i]);
      weights()[head * kWeightStride + lane_] = from_float<T>(step.weight);
      if (lane_ == 0) rescale()[head] = step.factor;
    }
  }

  __device__ __forceinline__ void sum_values(int place) {
    uint32_t from_weights[2][4];
    const T* const p = weights() + lane_ % 16 * kWeightStride + lane_ / 16 * 8;
    ldmatrix_x4(from_weights[0], p);
    ldmatrix_x4(from_weights[1], p + 16);
    const float low = rescale()[lane_ / 4];
    const float high = rescale()[lane_ / 4 + 8];
    const T* const v = keys(place) + lane_ * shared_.row_stride;
#pragma unroll
    for (int i = 0; i < kValueTiles; ++i) {
      const int column = (i * kWarps + warp_) * 8;
      if (column >= params_.latent_dim) break;
      uint32_t from_v[4];
      ldmatrix_x4_transposed(from_v, v + column);
#pragma unroll
      for (int j = 0; j < 4; ++j) values_[i][j] *= j < 2 ? low : high;
      mma_16x8x16<T>(values_[i], from_weights[0], {from_v[0], from_v[1]});
      mma_16x8x16<T>(values_[i], from_weights[1], {from_v[2], from_v[3]});
    }
  }

  // The row's result, or what attention_merge_latents makes it of.
  __device__ __forceinline__ void write() const {
    const bool is_whole = params_.launch.num_splits == 1;
    float* const partial =
        is_whole ? nullptr
                 : params_.launch.partials +
                       ((row_ * gridDim.y + blockIdx.y) * params_.launch.num_splits + split_) *
                           partial_size(params_.latent_dim);
    if (lane_ == 0) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int head = 2 * warp_ + i;
        sums()[head] = sum_[i];
        if (is_whole) continue;
        float* const state = partial + kHeads * params_.latent_dim + 2 * head;
        state[0] = largest_[i];
        state[1] = sum_[i];
      }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kValueTiles; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int column = (i * kWarps + warp_) * 8 + lane_ % 4 * 2 + j % 2;
        const int head = lane_ / 4 + j / 2 * 8;
        if (column >= params_.latent_dim || first_head_ + head >= params_.num_heads) continue;
        if (is_whole) {
          static_cast<T*>(params_.out)[row_ * params_.out_stride +
                                       int64_t{first_head_ + head} * params_.latent_dim + column] =
              from_float<T>(__fdividef(values_[i][j], sums()[head]));
        } else {
          partial[head * params_.latent_dim + column] = values_[i][j];
        }
      }
    }
  }

  const LatentParams& params_;
  const SharedLayout shared_;
  const int lane_;
  const int warp_;
  const int64_t row_;
  const int32_t split_;
  const int32_t first_head_;
  const TokenRow token_;
  int32_t first_seen_;   // of the context
  int32_t begin_, end_;  // tiles
  float largest_[2] = {kMinusInfinity,
                       kMinusInfinity};  // score in units of log2, of the warp's two heads
  float sum_[2] = {0.0F, 0.0F};          // of weights
  float values_[kValueTiles][4] = {};
};

template <typename T>
__global__ void __launch_bounds__(kThreads, 2)
    attention_latents(const __grid_constant__ LatentParams params) {
  wait_for_previous_kernel();
  launch_next_kernel();
  LatentBlock<T>(params).run();
}

// Block (row, head): the pieces of its context, in order.
template <typename T>
__global__ void attention_merge_latents(const __grid_constant__ LatentParams params) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  const auto head = static_cast<int32_t>(blockIdx.y);
  const int32_t num_splits = params.launch.num_splits;
  const int64_t size = partial_size(params.latent_dim);
  const float* const first =
      params.launch.partials +
      (row * num_groups(params.num_heads) + head / kHeads) * num_splits * size;
  const float* const states = first + int64_t{kHeads} * params.latent_dim + head % kHeads * 2;
  float largest = kMinusInfinity;
  for (int32_t i = 0; i < num_splits; ++i) largest = fmaxf(largest, states[i * size]);
  for (auto column = static_cast<int32_t>(threadIdx.x); column < params.latent_dim;
       column += kMergeThreads) {
    float out = 0.0F;
    float sum = 0.0F;
    for (int32_t i = 0; i < num_splits; ++i) {
      const float weight = weight_of(states[i * size], largest);
      sum = fmaf(weight, states[i * size + 1], sum);
      const float value = first[i * size + int64_t{head % kHeads} * params.latent_dim + column];
      out = fmaf(weight, value, out);
    }
    static_cast<T*>(
        params.out)[row * params.out_stride + int64_t{head} * params.latent_dim + column] =
        from_float<T>(__fdividef(out, sum));
  }
}

}  // namespace

void check_latents(int32_t num_heads, int32_t key_dim, int32_t latent_dim) {
  if (latent_dim <= kMaxLatentDim && key_dim <= kMaxLatentKeyDim && num_heads <= kMaxLatentHeads)
    return;
  throw Error(Code::kUnsupported,
              "the cuda backend's latent attention takes a kv_lora_rank up to " +
                  std::to_string(kMaxLatentDim) + ", " + std::to_string(kMaxLatentKeyDim) +
                  " columns of a cached row and " + std::to_string(kMaxLatentHeads) +
                  " heads, got " + std::to_string(latent_dim) + ", " + std::to_string(key_dim) +
                  " and " + std::to_string(num_heads) + "; use --backend cpu");
}

int32_t latent_splits(int64_t num_rows, int32_t num_heads, int32_t num_blocks) {
  const int64_t wanted = num_blocks / std::max<int64_t>(num_rows * num_groups(num_heads), 1);
  return static_cast<int32_t>(std::clamp<int64_t>(wanted, 1, kMaxSplits));
}

int64_t latent_partial_floats(int32_t num_blocks, int32_t latent_dim) {
  return num_blocks * partial_size(latent_dim);
}

void prepare_latent_attention() {
  constexpr SharedLayout kLargest((kMaxLatentKeyDim + 15) / 16 * 16);
  allow_shared(attention_latents<bf16>, kLargest.size);
  allow_shared(attention_latents<f16>, kLargest.size);
}

void launch_latent_attention(cudaStream_t stream,
                             const AttentionArgs& args,
                             const LatentAttentionLaunch& given) {
  if (args.q.rows == 0) return;
  TGI_CHECK(args.num_kv_heads == 1 && args.out.dtype == args.q.dtype);
  const LatentParams params = {
      .q = args.q.data,
      .q_stride = args.q.stride,
      .out = args.out.data,
      .out_stride = args.out.stride,
      .launch = given,
      .num_heads = args.num_heads,
      .key_dim = args.head_dim,
      .latent_dim = args.latent_dim,
      .sliding_window = args.sliding_window,
      .attention_chunk = args.attention_chunk,
      .score = score_scale(args),
      .sinks = args.sinks == nullptr ? nullptr : args.sinks->as<const float>()};
  const auto rows = static_cast<unsigned>(args.q.rows);
  with_element(args.q.dtype, [&](auto element) {
    using T = decltype(element);
    launch(stream,
           {.grid = dim3(rows * static_cast<unsigned>(given.num_splits),
                         static_cast<unsigned>(num_groups(args.num_heads))),
            .block = dim3(kThreads),
            .shared_bytes = static_cast<size_t>(SharedLayout(given.cache_dim).size),
            .overlaps_previous = true},
           attention_latents<T>, params);
    if (given.num_splits == 1) return;
    launch(stream,
           {.grid = dim3(rows, static_cast<unsigned>(args.num_heads)),
            .block = dim3(kMergeThreads),
            .shared_bytes = 0,
            .overlaps_previous = true},
           attention_merge_latents<T>, params);
  });
}

}  // namespace tgi::cuda
