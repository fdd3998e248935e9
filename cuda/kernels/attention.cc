#include "cuda/kernels/attention.h"

#include <cmath>
#include <string>

#include "base/error.h"
#include "cuda/kernels/attention_kernels.h"

namespace tgi::cuda {

ScoreScale score_scale(const AttentionArgs& args) {
  // cap * tanh(y) = cap * (1 - 2 / (2^(2 * y * log2(e)) + 1))
  const bool has_alibi = args.alibi_slopes != nullptr;
  if (args.softcap > 0.0F) {
    return {.multiplier = args.scale / args.softcap * 2.0F * kLog2E,
            .cap_log2 = args.softcap * kLog2E,
            .has_alibi = has_alibi};
  }
  return {.multiplier = args.scale * kLog2E, .cap_log2 = 0.0F, .has_alibi = has_alibi};
}

void check_attention(int32_t head_dim, int32_t num_heads, int32_t num_kv_heads) {
  if (head_dim <= 0 || head_dim > kMaxAttentionDim || head_dim % 16 != 0) {
    throw Error(Code::kUnsupported,
                "the cuda backend's attention takes a head_dim that is a multiple of 16 up to " +
                    std::to_string(kMaxAttentionDim) + ", got " + std::to_string(head_dim));
  }
  const bool divides = num_kv_heads > 0 && num_heads % num_kv_heads == 0;
  if (!divides || num_heads / num_kv_heads > kMaxGroup || num_heads < num_kv_heads) {
    throw Error(Code::kUnsupported,
                "the cuda backend's attention takes 1 to " + std::to_string(kMaxGroup) +
                    " heads for each kv head, got " + std::to_string(num_heads) + " heads and " +
                    std::to_string(num_kv_heads) + " kv heads");
  }
}

int32_t decode_grid_blocks(int32_t num_multiprocessors, int64_t shared_bytes_of_multiprocessor) {
  return num_multiprocessors *
         (shared_bytes_of_multiprocessor >= 2 * max_decode_shared_bytes() ? 2 : 1);
}

int64_t attention_partial_floats(int32_t num_partials, int32_t group, int32_t head_dim) {
  return num_partials * partial_floats(group, head_dim);
}

void prepare_attention_kernels(int64_t shared_bytes_of_multiprocessor) {
  prepare_attention_decode();
  prepare_attention_prefill();
  prepare_attention_wide(shared_bytes_of_multiprocessor);
}

void launch_attention(cudaStream_t stream,
                      const AttentionArgs& args,
                      const AttentionLaunch& launch) {
  TGI_CHECK(launch.block_size > 0 && launch.block_size % 8 == 0);
  TGI_CHECK(args.scale > 0.0F);  // the largest product is the largest score
  TGI_CHECK(args.q.dtype == args.out.dtype);
  const bool cache_is_f8 = launch.cache_dtype == DType::kF8E4M3;
  TGI_CHECK(cache_is_f8 || launch.cache_dtype == args.q.dtype);
  const AttentionParams params = {
      .q = args.q.data,
      .q_stride = args.q.stride,
      .out = args.out.data,
      .out_stride = args.out.stride,
      .cache = launch.cache,
      .key_scales = launch.key_scales,
      .value_scales = launch.value_scales,
      .block_tables = launch.block_tables,
      .max_blocks = launch.max_blocks,
      .block_size = launch.block_size,
      .num_kv_heads = args.num_kv_heads,
      .heads_of_item = launch.heads_of_item,
      .group = args.num_heads / args.num_kv_heads,
      .head_dim = args.head_dim,
      .sliding_window = args.sliding_window,
      .attention_chunk = args.attention_chunk,
      .sinks = args.sinks == nullptr ? nullptr : args.sinks->as<const float>(),
      .alibi_slopes = args.alibi_slopes == nullptr ? nullptr : args.alibi_slopes->as<const float>(),
      .score = score_scale(args),
      .plan = launch.plan,
      .partials = launch.partials};
  if (args.head_dim > kMaxNarrowDim) {
    WideAttention wide = {.num_tiles = launch.num_tiles,
                          .shared_bytes_of_multiprocessor = launch.shared_bytes_of_multiprocessor};
    if (launch.num_decode_blocks > 0) {
      wide.num_sequences = launch.num_sequences;
      wide.num_splits = wide_splits(launch.num_sequences, params.group, params.num_kv_heads,
                                    launch.num_decode_blocks);
    }
    return launch_attention_wide(stream, args.q.dtype, cache_is_f8, params, wide);
  }
  if (launch.num_tiles > 0) {
    launch_attention_prefill(stream, args.q.dtype, cache_is_f8, launch.num_tiles, params);
  }
  if (launch.num_decode_blocks > 0) {
    launch_attention_decode(stream, args.q.dtype, cache_is_f8, launch.num_decode_blocks, params);
    if (launch.max_merges > 0) {
      launch_attention_merge(stream, args.q.dtype, launch.max_merges, params);
    }
  }
}

}  // namespace tgi::cuda
