#include "cuda/device_state.h"

#include <algorithm>
#include <numeric>

#include "cuda/kernels/attention.h"
#include "cuda/kernels/experts.h"
#include "cuda/kernels/latent.h"
#include "cuda/kernels/low_rank.h"
#include "cuda/kernels/state.h"
#include "cuda/kv_cache.h"

namespace tgi::cuda {

HeadLayout HeadLayout::of(const SlotLayout& slots, const KvHeads& alike) {
  if (!slots.unlike_heads.empty()) {
    return {.num_heads = slots.num_heads, .kinds = slots.unlike_heads};
  }
  // A model without attention has no heads.
  const KvHeads kind = {.num_kv_heads = std::max(alike.num_kv_heads, 1),
                        .head_dim = std::max(alike.head_dim, 1)};
  return {.num_heads = std::max(slots.num_heads, kind.num_kv_heads), .kinds = {kind}};
}

int32_t HeadLayout::common_kv_heads() const {
  int32_t out = 0;
  for (const KvHeads& kind : kinds) out = std::gcd(out, kind.num_kv_heads);
  return out;
}

int32_t HeadLayout::padded_dim() const {
  int32_t out = 0;
  for (const KvHeads& kind : kinds) out = std::max(out, cuda::padded_dim(kind));
  return out;
}

bool HeadLayout::is_padded() const {
  return std::ranges::any_of(kinds, [](const KvHeads& kind) {
    const int32_t dim = cuda::padded_dim(kind);
    return dim != kind.head_dim || dim != kind.value_cols();
  });
}

// Of the pieces that contexts are cut into.
static int64_t partial_floats_of(const SlotLayout& layout,
                                 const AttentionPlanOptions& plan,
                                 const HeadLayout& heads) {
  if (layout.latent_dim > 0) return latent_partial_floats(plan.num_blocks, layout.latent_dim);
  const int32_t num_partials = max_decode_partials(layout.num_slots, plan);
  int64_t out = 0;
  for (const KvHeads& kind : heads.kinds) {
    const int32_t dim = cuda::padded_dim(kind);
    const int32_t heads_of_item = kind.num_kv_heads / plan.num_kv_heads;
    out = std::max(out, dim > kMaxNarrowDim
                            ? wide_partial_floats(plan.num_blocks, dim)
                            : attention_partial_floats(num_partials * heads_of_item,
                                                       heads.num_heads / kind.num_kv_heads, dim));
  }
  return out;
}

StateSizes state_sizes(const SlotLayout& layout,
                       const AttentionPlanOptions& plan,
                       const HeadLayout& heads) {
  const int64_t slots = layout.num_slots;
  const int64_t tokens = layout.max_batch_tokens;
  const int64_t vocab = layout.vocab_size;
  const int64_t logit_rows = std::min<int64_t>(tokens, kLogitTileRows);
  const StepCapacity capacity = StepCapacity::of(layout, plan);
  StateSizes out{};
  const auto set = [&out](StatePart part, int64_t count, size_t element) {
    out[static_cast<size_t>(part)] = count * static_cast<int64_t>(element);
  };
  set(StatePart::kStep, static_cast<int64_t>(StepArrays::at(nullptr, capacity).size_bytes), 1);
  set(StatePart::kBlockTables, layout.num_groups * (slots + 1) * layout.max_blocks_per_slot,
      sizeof(int32_t));
  set(StatePart::kLastTokens, slots + 1, sizeof(int32_t));
  set(StatePart::kSampling, slots + 1, sizeof(SlotSampling));
  set(StatePart::kBias, slots * kMaxLogitBias, sizeof(TokenBiasEntry));
  set(StatePart::kTokenCounts, slots * vocab, sizeof(uint16_t));
  set(StatePart::kTokenIds, tokens, sizeof(int32_t));
  set(StatePart::kStartIds, kStartIds, sizeof(int32_t));
  set(StatePart::kCosSin, tokens * kMaxRotaryColumns, sizeof(float));
  // Queries and results of heads that are not held as they come.
  const bool has_latents = layout.latent_dim > 0;
  set(StatePart::kPaddedHeads,
      heads.is_padded() && !has_latents ? 2 * tokens * heads.num_heads * heads.padded_dim() : 0, 2);
  set(StatePart::kPartials, partial_floats_of(layout, plan, heads), sizeof(float));
  set(StatePart::kLayerStates,
      slots * layout.state.num_layers * SlotStateShape::of(layout.state).floats(), sizeof(float));
  set(StatePart::kLogits, logit_rows * ((vocab + 7) / 8 * 8), sizeof(float));
  set(StatePart::kSampleWorkspace,
      sample_workspace_bytes(static_cast<int32_t>(logit_rows), layout.vocab_size), 1);
  const int64_t mask_rows = std::min(slots * (1 + int64_t{layout.max_drafts}), tokens);
  set(StatePart::kMasks, mask_rows * ((vocab + 31) / 32), sizeof(uint32_t));
  set(StatePart::kSampled, tokens, sizeof(SampledRow));
  set(StatePart::kReported, tokens * layout.reported_cols, sizeof(float));
  set(StatePart::kPooled, tokens * layout.pooled_cols, sizeof(float));
  const int64_t with_adapters = layout.max_adapters > 0 ? 1 : 0;
  set(StatePart::kSlotAdapters, with_adapters * (slots + 1), sizeof(int32_t));
  set(StatePart::kAdapterPlaces, with_adapters * (layout.max_adapters + int64_t{1}),
      sizeof(LowRankAdapter));
  set(StatePart::kShrunkRows, with_adapters * tokens * kMaxStackedRank, sizeof(float));
  const int64_t routed = tokens * layout.experts_per_token;
  set(StatePart::kExpertScores, tokens * layout.num_experts, sizeof(float));
  set(StatePart::kChosenExperts, routed, sizeof(int32_t));
  set(StatePart::kChosenWeights, routed, sizeof(float));
  set(StatePart::kChosenRows, routed, sizeof(int32_t));
  set(StatePart::kRoutedTokens, routed, sizeof(int32_t));
  set(StatePart::kExpertTiles, routed, sizeof(ExpertTile));
  return out;
}

}  // namespace tgi::cuda
