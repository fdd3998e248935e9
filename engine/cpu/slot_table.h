// The fixed table of running sequences in host memory: block tables, sampling parameters, the token
// sampled last, and what the penalties need to know of prompt and output. Changed only between
// steps and by record(); allocates nothing after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/device/backend.h"
#include "engine/sample/sampler.h"
#include "engine/tensor/batch.h"
#include "engine/tensor/tensor.h"

namespace tgi {

class SlotTable {
 public:
  explicit SlotTable(const SlotLayout& layout);
  static int64_t bytes(const SlotLayout& layout);

  // Slot starts, then block appends.
  void apply(const Batch& batch);

  const int32_t* block_table(int32_t slot, int32_t group) const {
    return block_tables_.data() + table_begin(slot, group);
  }
  const SamplingParams& sampling(int32_t slot) const { return entry(slot).sampling; }
  // The last token of the context that is known: of the prompt, or sampled.
  int32_t last_token(int32_t slot) const { return entry(slot).last_token; }
  int32_t adapter(int32_t slot) const { return entry(slot).adapter; }
  // Distinct ids, kept only for slots with penalties.
  std::span<const TokenCount> history(int32_t slot) const {
    return {history_of(slot), static_cast<size_t>(entry(slot).num_history)};
  }
  // An id of the batch: itself, or what the slot it names sampled last.
  int32_t resolve(int32_t token_id) const {
    return token_id >= 0 ? token_id : last_token(-1 - token_id);
  }

  void record(int32_t slot, int32_t token_id);

 private:
  struct Entry {
    SamplingParams sampling;
    int32_t last_token = 0;
    int32_t num_history = 0;
    int32_t adapter = 0;
  };

  // Distinct ids a slot can see: no more than its context, no more than there are.
  static int64_t history_capacity(const SlotLayout& layout);

  const Entry& entry(int32_t slot) const { return entries_[static_cast<size_t>(slot)]; }
  TokenCount* history_of(int32_t slot) const {
    return static_cast<TokenCount*>(history_.data()) + slot * history_capacity_;
  }
  void start(const SlotStart& start);

  size_t table_begin(int32_t slot, int32_t group) const {
    return (static_cast<size_t>(group) * entries_.size() + static_cast<size_t>(slot)) * max_blocks_;
  }

  size_t max_blocks_;
  int64_t history_capacity_;
  std::vector<Entry> entries_;         // (num_slots)
  std::vector<int32_t> block_tables_;  // (num_groups, num_slots, max_blocks_per_slot)
  Buffer history_;                     // (num_slots, history_capacity) TokenCount
  std::vector<int32_t> index_of_;  // (vocab) of start: where an id is in the history, -1 between
};

}  // namespace tgi
