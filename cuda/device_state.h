// What a device takes beside weights, activations and KV cache: sizes in closed form, so that the
// plan and the allocation can't differ.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/kernels/sample.h"
#include "cuda/step_buffer.h"
#include "engine/device/backend.h"

namespace tgi::cuda {

inline constexpr int32_t kMaxLogitBias = 1024;      // entries of a slot
inline constexpr int32_t kLogitTileRows = 256;      // rows of logits that are held at a time
inline constexpr int32_t kMaxRotaryColumns = 1024;  // of all ropes
inline constexpr int32_t kStartIds = 65536;         // prompt ids copied at a time for the penalties
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
  kLayerStates,
  kLogits,
  kSampleWorkspace,
  kMasks,
  kSampled,
  kReported,
  kPooled,
  kSlotAdapters,
  kAdapterPlaces,
  kShrunkRows,
  kExpertScores,
  kChosenExperts,
  kChosenWeights,
  kChosenRows,
  kRoutedTokens,
  kExpertTiles,
  kCount,
};

using StateSizes = std::array<int64_t, static_cast<size_t>(StatePart::kCount)>;

// What attention is given.
struct HeadLayout {
  int32_t num_heads = 0;
  std::vector<KvHeads> kinds{};  // of keys and values, each once

  // `alike`: where layers do not differ.
  static HeadLayout of(const SlotLayout& slots, const KvHeads& alike);

  // That the kv heads of all kinds are a multiple of.
  int32_t common_kv_heads() const;
  // As heads are held, at most.
  int32_t padded_dim() const;
  // Whether any is not held as it comes.
  bool is_padded() const;
};

StateSizes state_sizes(const SlotLayout& layout,
                       const AttentionPlanOptions& plan,
                       const HeadLayout& heads);

}  // namespace tgi::cuda
