// What a model needs of its device beside its weights, for Device::kv_bytes, slot_bytes and
// allocate_state.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/device/backend.h"
#include "engine/model/kv_plan.h"
#include "engine/model/model_config.h"

namespace tgi {

struct StateSize {
  int num_ranks = 1;        // that share the model's heads
  int32_t num_blocks = 0;   // of KV cache
  int32_t block_size = 16;  // tokens
  DType kv_dtype = DType::kBF16;
  int32_t num_slots = 0;            // sequences in a step
  int32_t max_blocks_per_slot = 0;  // bounds the context of a sequence
  int32_t max_batch_tokens = 0;     // token rows in a step
  int32_t max_adapters = 0;         // on the device at once
  int32_t max_drafts = 0;           // of a slot in a step
  int32_t reported_cols = 0;        // of a row that a step reports
  bool pools_rows = false;          // a step reports rows that tokens are drawn from
};

// A rank's part of what all of them have together.
inline KvHeads heads_of_rank(KvHeads heads, int num_ranks) {
  if (!heads.keys_only) heads.num_kv_heads /= num_ranks;
  return heads;
}

// What attention sees of the cache, at most. Of latents there is one row, whole on every rank.
inline int32_t cached_heads(const ModelConfig& config, int num_ranks) {
  return has_latents(config) ? 1 : most_kv_heads(config).num_kv_heads / num_ranks;
}
inline int32_t cached_head_dim(const ModelConfig& config) {
  return has_latents(config) ? config.latent.key_dim() : most_kv_heads(config).head_dim;
}
// The same with the keys of an indexer.
inline int32_t most_cached_head_dim(const ModelConfig& config) {
  return std::max(cached_head_dim(config), config.indexer.head_dim);
}

inline KvLayout kv_layout(const ModelConfig& config, const KvPlan& plan, const StateSize& size) {
  std::vector<std::vector<KvHeads>> groups = plan.heads;
  for (std::vector<KvHeads>& group : groups) {
    for (KvHeads& heads : group) heads = heads_of_rank(heads, size.num_ranks);
  }
  return {.num_layers = plan.num_layers,
          .num_kv_heads = cached_heads(config, size.num_ranks),
          .head_dim = most_cached_head_dim(config),
          .block_size = size.block_size,
          .num_blocks = size.num_blocks,
          .dtype = size.kv_dtype,
          .latent_dim = config.latent.rank,
          .groups = std::move(groups)};
}

inline StateLayout recurrent_layout(const ModelConfig& config) {
  const StateConfig& state = config.state;
  const bool is_conv_only = state.kind == StateKind::kShortConv;
  return {.num_layers = count_layers(config, &LayerPlan::has_state),
          .conv_channels = static_cast<int32_t>(state.num_conv_channels()),
          .conv_kernel = state.conv_kernel,
          .num_heads = is_conv_only ? 0 : state.num_heads,
          .head_dim = state.head_dim,
          .state_size = state.state_size,
          .decays_numbers = state.decays_numbers};
}

inline std::vector<KvHeads> unlike_heads(const KvPlan& plan, int num_ranks) {
  std::vector<KvHeads> out;
  for (const std::vector<KvHeads>& group : plan.heads) {
    for (const KvHeads& all : group) {
      const KvHeads heads = heads_of_rank(all, num_ranks);
      if (std::ranges::find(out, heads) == out.end()) out.push_back(heads);
    }
  }
  return out;
}

inline SlotLayout slot_layout(const ModelConfig& config,
                              const KvPlan& plan,
                              const StateSize& size) {
  return {.num_slots = size.num_slots,
          .max_blocks_per_slot = size.max_blocks_per_slot,
          .max_batch_tokens = size.max_batch_tokens,
          .vocab_size = config.vocab_size,
          .block_size = size.block_size,
          .num_groups = plan.groups.num_groups(),
          .max_matmul_cols = max_matmul_cols(config),
          .num_heads = most_heads(config) / size.num_ranks,
          .num_kv_heads = cached_heads(config, size.num_ranks),
          .head_dim = most_cached_head_dim(config),
          .num_experts = config.experts.num_choices(),
          .experts_per_token = config.experts.num_experts > 0 ? config.experts.route.top_k : 0,
          .has_alibi = !config.alibi_slopes.empty(),
          .state = recurrent_layout(config),
          .latent_dim = config.latent.rank,
          .max_adapters = size.max_adapters,
          .max_drafts = size.max_drafts,
          .norms_values = count_layers(config, &LayerPlan::divides_v) > 0,
          .scales_experts = config.experts.has_scale,
          .num_streams = config.streams.count,
          .cuts_gates = cuts_gates(config),
          .reported_cols = size.reported_cols,
          .pooled_cols = config.gives_vectors || size.pools_rows ? config.hidden_size : 0,
          .unlike_heads = unlike_heads(plan, size.num_ranks),
          .num_choices = has_indexer(config) ? config.indexer.num_choices() : 0,
          .choice_block_size = config.indexer.rule.block_size};
}

inline void allocate_state(Device& device,
                           const ModelConfig& config,
                           const KvPlan& plan,
                           const StateSize& size) {
  device.allocate_state(kv_layout(config, plan, size), slot_layout(config, plan, size));
}

}  // namespace tgi
