// Sizes that the sources of CpuDevice share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/device/backend.h"

namespace tgi {

// Logits exist for this many rows at a time.
inline constexpr int64_t kLogitTileRows = 32;

// Bounds the attention workspace, so that it does not depend on the model.
inline constexpr int32_t kMaxHeadDim = 512;
inline constexpr int64_t kAttentionScratchBytes =
    attention_scratch_floats(kMaxHeadDim) * int64_t{sizeof(float)};

// Of all ropes together. Fixed, so that the plan can be made before the model adds them.
inline constexpr int32_t kMaxRotaryColumns = 512;

inline size_t cos_sin_bytes(const SlotLayout& layout) {
  return static_cast<size_t>(layout.max_batch_tokens) * kMaxRotaryColumns * sizeof(float);
}

inline const float* row_of(const Tensor& tensor, int64_t row) {
  return tensor.as<const float>() + row * tensor.stride;
}

inline float* mutable_row_of(const Tensor& tensor, int64_t row) {
  return tensor.as<float>() + row * tensor.stride;
}

}  // namespace tgi
