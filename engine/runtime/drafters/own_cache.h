// The KV cache and the slots that a layer which drafts has on its device: room for what the model
// has room for, block beside block.
#pragma once

#include <cstdint>

#include "engine/device/backend.h"
#include "engine/model/kv_plan.h"
#include "engine/model/model_config.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/runtime/drafters/row_drafter.h"

namespace tgi {

inline constexpr int32_t kMostOwnDrafts = 64;  // of a step of a sequence

// Of the rows that a RowDrafter keeps, `cols` each.
int64_t waiting_row_bytes(const DrafterSizes& sizes, int64_t cols);

class OwnCache {
 public:
  // `config`: of the layers that draft alone; outlives it. `max_cols`: the widest x of any matrix
  // beside theirs.
  OwnCache(const ModelConfig& config, int32_t max_cols, DType kv_dtype, const DrafterSizes& sizes);

  const KvPlan& plan() const { return plan_; }
  int64_t slot_bytes(const Device& device) const;
  // Beside each of the model's blocks.
  int64_t block_bytes(const Device& device) const;
  // Takes the device's state.
  RowDrafterOptions allocate(Device& device) const;

 private:
  int32_t max_total_tokens() const;
  KvLayout kv_of(int32_t num_blocks) const;
  SlotLayout slots() const;

  const ModelConfig& config_;
  const int32_t max_cols_;
  const DType kv_dtype_;
  const DrafterSizes sizes_;
  const KvPlan plan_;
};

}  // namespace tgi
