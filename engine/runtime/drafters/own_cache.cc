#include "engine/runtime/drafters/own_cache.h"

#include <algorithm>

#include "engine/model/state_layout.h"

namespace tgi {

int64_t waiting_row_bytes(const DrafterSizes& sizes, int64_t cols) {
  return int64_t{kMostWaitingRows} * sizes.max_running * cols * int64_t{sizeof(float)};
}

OwnCache::OwnCache(const ModelConfig& config,
                   int32_t max_cols,
                   DType kv_dtype,
                   const DrafterSizes& sizes)
    : config_(config),
      max_cols_(max_cols),
      kv_dtype_(kv_dtype),
      sizes_(sizes),
      plan_(plan_kv_groups(config, max_total_tokens())) {}

int32_t OwnCache::max_total_tokens() const {
  return std::min(sizes_.max_total_tokens, config_.max_positions);
}

static StateSize state_of(const DrafterSizes& sizes,
                          int32_t max_total_tokens,
                          DType kv_dtype,
                          int32_t num_blocks) {
  return {.num_blocks = num_blocks,
          .block_size = sizes.block_size,
          .kv_dtype = kv_dtype,
          .num_slots = sizes.max_running,
          .max_blocks_per_slot = (max_total_tokens + sizes.block_size - 1) / sizes.block_size,
          .max_batch_tokens = sizes.max_batch_tokens,
          .pools_rows = true};
}

KvLayout OwnCache::kv_of(int32_t num_blocks) const {
  return kv_layout(config_, plan_, state_of(sizes_, max_total_tokens(), kv_dtype_, num_blocks));
}

SlotLayout OwnCache::slots() const {
  SlotLayout out = slot_layout(config_, plan_, state_of(sizes_, max_total_tokens(), kv_dtype_, 1));
  out.max_matmul_cols = std::max(out.max_matmul_cols, max_cols_);
  return out;
}

int64_t OwnCache::slot_bytes(const Device& device) const {
  return device.slot_bytes(slots());
}

int64_t OwnCache::block_bytes(const Device& device) const {
  const int64_t block = device.kv_bytes(kv_of(1));
  return (plan_.groups.num_groups() * block + sizes_.num_groups - 1) / sizes_.num_groups;
}

RowDrafterOptions OwnCache::allocate(Device& device) const {
  const int64_t bytes = sizes_.num_blocks * block_bytes(device);
  const auto num_blocks = static_cast<int32_t>(bytes / device.kv_bytes(kv_of(1)));
  device.allocate_state(kv_of(num_blocks), slots());
  return {.num_slots = sizes_.max_running,
          .max_batch_tokens = sizes_.max_batch_tokens,
          .max_total_tokens = max_total_tokens(),
          .num_blocks = num_blocks,
          .block_size = sizes_.block_size,
          .kv_groups = plan_.groups};
}

}  // namespace tgi
