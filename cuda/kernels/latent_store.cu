// See latent.h: one warp takes one head of one token, or the key that all heads share.
#include "base/error.h"
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/latent.h"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/rotary.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kWarps = 4;

struct LatentShape {
  int32_t num_heads;
  int32_t kept_dim;
  int32_t latent_dim;
  int32_t rotary_dim;
  PositionScale query_scale;
  const float* head_scales;
  int64_t q_stride, key_stride, latent_q_stride;  // of a token
};

template <typename T>
__global__ void rotate_and_store_latent(
    LatentShape shape, StoreKvLaunch kv, T* q, T* key, T* latent_q) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const auto h = static_cast<int32_t>(blockIdx.y * kWarps + threadIdx.x / 32);
  if (h > shape.num_heads) return;
  const int64_t token = blockIdx.x;
  const TokenRow row = kv.rows[token];
  const float* const table = kv.cos_sin == nullptr
                                 ? nullptr
                                 : kv.cos_sin + token * kv.cos_sin_stride + kv.rope.first_column;
  const int32_t key_dim = shape.latent_dim + shape.rotary_dim;
  if (h < shape.num_heads) {
    T* const head = q + token * shape.q_stride + int64_t{h} * (shape.kept_dim + shape.rotary_dim);
    T* const to = latent_q + token * shape.latent_q_stride + int64_t{h} * key_dim;
    const bool scales = shape.query_scale.is_on() || shape.head_scales != nullptr;
    const float scale =
        query_factor(shape.query_scale, shape.head_scales, shape.num_heads, h, row.position);
    rotate_head(kv.rope, table, head + shape.kept_dim, to + shape.latent_dim, scale, lane);
    if (!scales) return;
    __syncwarp();
    for (int d = lane; d < shape.kept_dim + shape.rotary_dim; d += 32) {
      head[d] = from_float<T>(to_float(head[d]) * scale);
    }
    return;
  }
  if (key == nullptr) return;
  T* const own = key + token * shape.key_stride;
  rotate_head(kv.rope, table, own + shape.latent_dim, own + shape.latent_dim, 1.0F, lane);
  __syncwarp();
  const int32_t block =
      kv.block_tables[int64_t{row.slot} * kv.max_blocks + row.context_index / kv.block_size];
  T* const to =
      static_cast<T*>(kv.cache.keys) +
      (int64_t{block} * kv.block_size + row.context_index % kv.block_size) * kv.cache_head_dim;
  for (int d = lane; d < kv.cache_head_dim; d += 32) {
    to[d] = d < key_dim ? own[d] : from_float<T>(0.0F);
  }
}

}  // namespace

void launch_rotate_and_store_latent(cudaStream_t stream,
                                    const LatentArgs& args,
                                    const StoreKvLaunch& kv) {
  if (args.q.rows == 0) return;
  TGI_CHECK(kv.cache_dtype == args.q.dtype);
  const LatentShape shape = {
      .num_heads = args.num_heads,
      .kept_dim = args.kept_dim,
      .latent_dim = args.latent_dim,
      .rotary_dim = kv.rope.rotary_dim,
      .query_scale = args.query_scale,
      .head_scales = args.head_scales == nullptr ? nullptr : args.head_scales->as<const float>(),
      .q_stride = args.q.stride,
      .key_stride = args.key.stride,
      .latent_q_stride = args.latent_q.stride};
  with_element(args.q.dtype, [&](auto element) {
    using T = decltype(element);
    launch(stream,
           {.grid = dim3(static_cast<unsigned>(args.q.rows),
                         static_cast<unsigned>(args.num_heads / kWarps + 1)),
            .block = dim3(32 * kWarps),
            .shared_bytes = 0,
            .overlaps_previous = true},
           rotate_and_store_latent<T>, shape, kv, args.q.as<T>(), args.key.as<T>(),
           args.latent_q.as<T>());
  });
}

}  // namespace tgi::cuda
