// What a device takes beside weights, activations and KV cache: sizes in closed form, so that the
// plan and the allocation can't differ.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cuda/kernels/sample.h"
#include "cuda/step_buffer.h"
#include "engine/device/backend.h"

namespace tgi::cuda {

inline constexpr int32_t kMaxLogitBias = 1024;     // entries of a slot
inline constexpr int32_t kLogitTileRows = 256;     // rows of logits that are held at a time
inline constexpr int32_t kMaxRotaryColumns = 512;  // of all ropes
inline constexpr int32_t kStartIds = 65536;        // prompt ids copied at a time for the penalties
enum class StatePart : uint8_t {
  kStep,
  kBlockTables,
  kLastTokens,
  kSampling,
  kBias,
  kTokenCounts,
  kTokenIds,
  kStartIds,
  kCosSin,
  kPaddedHeads,
  kPartials,
  kLogits,
  kSampleWorkspace,
  kSampled,
  kCount,
};

using StateSizes = std::array<int64_t, static_cast<size_t>(StatePart::kCount)>;

// `partial_floats`: of one partial of attention (attention_partial_floats of 1).
StateSizes state_sizes(const SlotLayout& layout,
                       const AttentionPlanOptions& plan,
                       int64_t partial_floats);

}  // namespace tgi::cuda
