// See rows.h: one warp takes one head of one token, in place: norm, rotation, and of keys and
// values the way into the cache. The head waits in shared memory, where both partners of a rotation
// are at hand.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/reduce.cuh"
#include "cuda/kernels/rotary.cuh"
#include "cuda/kernels/rows.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kMaxHeadDim = 512;

struct HeadShape {
  int32_t num_heads;
  int32_t num_kv_heads;
  int32_t head_dim;
  int32_t value_cols;  // of a head of v
  int64_t stride;      // of a token's fused row
  float clip;          // 0: off
  float norm_eps;
  bool is_layer_norm;  // else RMS
  bool norm_after_rope;
  PositionScale query_scale;
  const float* head_scales;
  // Columns from one head's weights to the next; 0 where all heads share them.
  int32_t q_norm_stride, k_norm_stride;
};

__device__ __forceinline__ void norm_head(const HeadShape& shape,
                                          float* head,
                                          const float* __restrict__ weight,
                                          const float* __restrict__ bias,
                                          int dim,
                                          int lane) {
  float sum = 0.0F;
  for (int d = lane; d < dim; d += 32) sum += head[d];
  const float mean = shape.is_layer_norm ? warp_sum(sum) / static_cast<float>(dim) : 0.0F;
  float squares = 0.0F;
  for (int d = lane; d < dim; d += 32) squares += (head[d] - mean) * (head[d] - mean);
  const float inverse = 1.0F / sqrtf(warp_sum(squares) / static_cast<float>(dim) + shape.norm_eps);
  for (int d = lane; d < dim; d += 32) {
    head[d] = (head[d] - mean) * inverse * weight[d];
    if (bias != nullptr) head[d] += bias[d];
  }
  __syncwarp();
}

// What is not a number stays so.
__device__ __forceinline__ float clamped(float x, float limit) {
  return x < -limit ? -limit : x > limit ? limit : x;
}

template <typename C>
__device__ __forceinline__ void store_cached(
    C* to, int cache_dim, const float* head, int dim, int lane, float inverse_scale) {
  for (int d = lane; d < cache_dim; d += 32) {
    to[d] = from_float<C>(d < dim ? head[d] * inverse_scale : 0.0F);
  }
}

template <typename T, typename C>
__global__ void norm_rope_store(HeadShape shape,
                                const float* __restrict__ q_norm,
                                const float* __restrict__ k_norm,
                                const float* __restrict__ v_norm,
                                const float* __restrict__ q_norm_bias,
                                const float* __restrict__ k_norm_bias,
                                StoreKvLaunch kv,
                                T* qkv) {
  __shared__ float heads[kWarps][kMaxHeadDim];
  wait_for_previous_kernel();
  launch_next_kernel();
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int h = static_cast<int>(blockIdx.y) * kWarps + warp;
  const int num_rotated = shape.num_heads + shape.num_kv_heads;
  if (h >= num_rotated + shape.num_kv_heads) return;  // whole warps: no block-wide barrier follows
  const int64_t token = blockIdx.x;                   // there may be more than 65,535
  const bool is_query = h < shape.num_heads;
  const bool is_value = h >= num_rotated;
  const int dim = is_value ? shape.value_cols : shape.head_dim;
  const int column = is_value ? num_rotated * shape.head_dim + (h - num_rotated) * dim : h * dim;
  T* const in_place = qkv + token * shape.stride + column;
  float* const head = heads[warp];

  const float* weight = is_value ? v_norm : is_query ? q_norm : k_norm;
  const float* bias = is_value ? nullptr : is_query ? q_norm_bias : k_norm_bias;
  const int norm_offset =
      is_query ? h * shape.q_norm_stride : (h - shape.num_heads) * shape.k_norm_stride;
  if (weight != nullptr && !is_value) weight += norm_offset;
  if (bias != nullptr) bias += norm_offset;
  const bool rotates = !is_value && kv.cos_sin != nullptr;
  const bool clips = shape.clip > 0.0F;
  const bool scales_query = is_query && (shape.query_scale.is_on() || shape.head_scales != nullptr);
  const bool changes = weight != nullptr || rotates || clips || scales_query;
  if (is_query && !changes) return;

  for (int d = lane; d < dim; d += 32) {
    const float x = to_float(in_place[d]);
    head[d] = clips ? clamped(x, shape.clip) : x;
  }
  __syncwarp();
  if (weight != nullptr && !shape.norm_after_rope) norm_head(shape, head, weight, bias, dim, lane);
  if (rotates) {
    const float* const table = kv.cos_sin + token * kv.cos_sin_stride + kv.rope.first_column;
    rotate_head(kv.rope, table, head, head, 1.0F, lane);
    __syncwarp();
  }
  if (weight != nullptr && shape.norm_after_rope) norm_head(shape, head, weight, bias, dim, lane);
  if (scales_query) {
    const float scale = query_factor(shape.query_scale, shape.head_scales, shape.num_heads, h,
                                     kv.rows[token].position);
    for (int d = lane; d < dim; d += 32) head[d] *= scale;
  }
  if (changes) {
    for (int d = lane; d < dim; d += 32) {
      const T rounded = from_float<T>(head[d]);
      in_place[d] = rounded;
      head[d] = to_float(rounded);  // the cache holds what the fused row does
    }
  }
  if (is_query) return;

  const int kv_head = is_value ? h - num_rotated : h - shape.num_heads;
  const TokenRow row = kv.rows[token];
  const int32_t block = kv.block_tables[static_cast<int64_t>(row.slot) * kv.max_blocks +
                                        row.context_index / kv.block_size];
  const int64_t index = (static_cast<int64_t>(block) * kv.cache.block_rows +
                         kv_head * kv.block_size + row.context_index % kv.block_size) *
                        kv.cache_head_dim;
  const float* const scales = is_value ? kv.value_scales : kv.key_scales;
  const float inverse_scale = scales == nullptr ? 1.0F : 1.0F / scales[kv_head];
  store_cached(static_cast<C*>(is_value ? kv.cache.values : kv.cache.keys) + index,
               kv.cache_head_dim, head, dim, lane, inverse_scale);
}

int32_t norm_stride(const Tensor* weight, int32_t head_dim) {
  return weight == nullptr || weight->cols == head_dim ? 0 : head_dim;
}

const float* data_or_null(const Tensor* vector) {
  return vector == nullptr ? nullptr : vector->as<const float>();
}

}  // namespace

void launch_qk_norm_rope_store_kv(cudaStream_t stream,
                                  const QkvArgs& args,
                                  const StoreKvLaunch& kv) {
  if (args.qkv.rows == 0) return;
  TGI_CHECK(std::max(args.head_dim, args.value_cols()) <= kMaxHeadDim);
  const HeadShape shape = {.num_heads = args.num_heads,
                           .num_kv_heads = args.num_kv_heads,
                           .head_dim = args.head_dim,
                           .value_cols = args.value_cols(),
                           .stride = args.qkv.stride,
                           .clip = args.clip,
                           .norm_eps = args.norm_eps,
                           .is_layer_norm = args.norm_kind == NormKind::kLayer,
                           .norm_after_rope = args.norm_after_rope,
                           .query_scale = args.query_scale,
                           .head_scales = data_or_null(args.head_scales),
                           .q_norm_stride = norm_stride(args.q_norm, args.head_dim),
                           .k_norm_stride = norm_stride(args.k_norm, args.head_dim)};
  const int32_t all_heads = args.num_heads + 2 * args.num_kv_heads;
  const LaunchShape grid = {.grid = dim3(static_cast<unsigned>(args.qkv.rows),
                                         static_cast<unsigned>((all_heads + kWarps - 1) / kWarps)),
                            .block = dim3(32 * kWarps),
                            .shared_bytes = 0,
                            .overlaps_previous = true};
  const float* const q_norm = data_or_null(args.q_norm);
  const float* const k_norm = data_or_null(args.k_norm);
  const float* const v_norm = data_or_null(args.v_norm);
  const float* const q_bias = data_or_null(args.q_norm_bias);
  const float* const k_bias = data_or_null(args.k_norm_bias);
  with_element(args.qkv.dtype, [&](auto element) {
    using T = decltype(element);
    if (kv.cache_dtype == args.qkv.dtype) {
      launch(stream, grid, norm_rope_store<T, T>, shape, q_norm, k_norm, v_norm, q_bias, k_bias, kv,
             args.qkv.as<T>());
    } else {
      TGI_CHECK(kv.cache_dtype == DType::kF8E4M3);
      launch(stream, grid, norm_rope_store<T, f8>, shape, q_norm, k_norm, v_norm, q_bias, k_bias,
             kv, args.qkv.as<T>());
    }
  });
}

}  // namespace tgi::cuda
