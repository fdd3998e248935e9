// Sizes that the sources of CpuDevice share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/device/backend.h"

namespace tgi {

// Logits exist for this many rows at a time.
inline constexpr int64_t kLogitTileRows = 32;

// Bounds the attention workspace, so that it does not depend on the model.
inline constexpr int32_t kMaxHeadDim = 640;
inline constexpr int64_t kAttentionScratchBytes = attention_scratch_bytes(kMaxHeadDim, true);

// Columns of all ropes together. Fixed, so that the plan can be made before the model adds them.
inline constexpr int32_t kMaxRotaryColumns = 1024;

inline size_t cos_sin_bytes(const SlotLayout& layout) {
  return static_cast<size_t>(layout.max_batch_tokens) * kMaxRotaryColumns * sizeof(float);
}

// The most that a prepared row takes: 4 bytes a column for the types that need most. The extra line
// keeps rows from falling on the same sets of the cache.
constexpr int64_t prepared_row_bytes(int64_t x_bytes) {
  return round_up(x_bytes, 64) + 64;
}

// Rows behind the last one that a kernel may read, and whose results it drops.
inline constexpr int64_t kExtraPreparedRows = 32;

inline size_t prepared_bytes(const SlotLayout& layout) {
  const int64_t rows =
      std::max<int64_t>(layout.max_batch_tokens, kLogitTileRows) + kExtraPreparedRows;
  const int64_t cols = round_up(layout.max_matmul_cols, 256);
  return static_cast<size_t>(rows * prepared_row_bytes(cols * 4));
}

// Of an indexer: the heads of a query, each a prepared row, a panel of keys that were codes, and
// products of both.
inline constexpr size_t kChoiceScratchBytes = static_cast<size_t>(
    (kMaxIndexerHeads + kExtraPreparedRows) * prepared_row_bytes(kMaxHeadDim * 4) +
    kMaxHeadDim * kPanelRows * 4 + kMaxIndexerHeads * kPanelRows * 4);

inline int64_t context_of(const SlotLayout& layout) {
  return int64_t{layout.max_blocks_per_slot} * layout.block_size;
}

// Queries whose choices are made together: as many scores of a whole context are kept.
inline constexpr int64_t kQueriesAtOnce = 16;
inline size_t choice_scores_bytes(const SlotLayout& layout) {
  const int64_t blocks = context_of(layout) / layout.choice_block_size + 1;
  return static_cast<size_t>(kQueriesAtOnce * layout.num_choices * blocks) * sizeof(float);
}

inline float scale_at(const PositionScale& scale, int32_t position) {
  if (scale.power != 0.0F) {
    const float spans =
        static_cast<float>(position + scale.offset) / static_cast<float>(scale.positions);
    return std::pow(1.0F + spans, scale.power);
  }
  const auto spans = static_cast<float>((position + scale.offset) / scale.positions);
  return 1.0F + scale.beta * std::log(1.0F + spans);
}

// Multiplies the q of each head, `head_dim` wide, by what its position and its head make of it.
template <typename Args>
void scale_queries(const Args& args, int64_t head_dim, int32_t position, float* q) {
  if (!args.query_scale.is_on() && args.head_scales == nullptr) return;
  const float scale = args.query_scale.is_on() ? scale_at(args.query_scale, position) : 1.0F;
  const float* const slopes =
      args.head_scales == nullptr ? nullptr : args.head_scales->template as<const float>();
  const float logarithm = std::log(1.0F + static_cast<float>(position));
  for (int32_t h = 0; h < args.num_heads; ++h) {
    const float of_head =
        slopes == nullptr ? 1.0F : slopes[h] * logarithm + slopes[args.num_heads + h];
    for (int64_t i = 0; i < head_dim; ++i) q[h * head_dim + i] *= scale * of_head;
  }
}

// Of q head h, or of k head h - num_heads; null where there is none.
inline const float* head_norm_part(const QkvArgs& args,
                                   const Tensor* q_part,
                                   const Tensor* k_part,
                                   int32_t h) {
  const Tensor* weight = h < args.num_heads ? q_part : k_part;
  if (weight == nullptr) return nullptr;
  const int32_t head = h < args.num_heads ? h : h - args.num_heads;
  const bool is_shared = weight->cols == args.head_dim;
  return weight->as<const float>() + (is_shared ? 0 : int64_t{head} * args.head_dim);
}
inline const float* head_norm_weight(const QkvArgs& args, int32_t h) {
  return head_norm_part(args, args.q_norm, args.k_norm, h);
}
inline const float* head_norm_bias(const QkvArgs& args, int32_t h) {
  return head_norm_part(args, args.q_norm_bias, args.k_norm_bias, h);
}

inline const float* row_of(const Tensor& tensor, int64_t row) {
  return tensor.as<const float>() + row * tensor.stride;
}

inline const float* data_or_null(const Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->as<const float>();
}

inline float* mutable_row_of(const Tensor& tensor, int64_t row) {
  return tensor.as<float>() + row * tensor.stride;
}

}  // namespace tgi
