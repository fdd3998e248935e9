// See slot_table.h.
#include "engine/cpu/slot_table.h"

#include <algorithm>

#include "base/error.h"
#include "engine/cpu/host_resources.h"

namespace tgi {

int64_t SlotTable::history_capacity(const SlotLayout& layout) {
  const int64_t context = int64_t{layout.max_blocks_per_slot} * layout.block_size;
  return std::min<int64_t>(context + 1, layout.vocab_size);
}

int64_t SlotTable::bytes(const SlotLayout& layout) {
  const auto slots = int64_t{layout.num_slots};
  const int64_t per_slot =
      static_cast<int64_t>(sizeof(Entry)) +
      int64_t{layout.num_groups} * layout.max_blocks_per_slot * int64_t{sizeof(int32_t)} +
      history_capacity(layout) * int64_t{sizeof(TokenCount)};
  return slots * per_slot + int64_t{layout.vocab_size} * int64_t{sizeof(int32_t)};
}

SlotTable::SlotTable(const SlotLayout& layout)
    : max_blocks_(static_cast<size_t>(layout.max_blocks_per_slot)),
      history_capacity_(history_capacity(layout)),
      entries_(static_cast<size_t>(layout.num_slots)),
      block_tables_(static_cast<size_t>(layout.num_groups) * static_cast<size_t>(layout.num_slots) *
                    max_blocks_),
      history_(
          map_memory(static_cast<size_t>(layout.num_slots * history_capacity_) * sizeof(TokenCount),
                     "token counts of the slots")),
      index_of_(static_cast<size_t>(layout.vocab_size), -1) {}

void SlotTable::apply(const Batch& batch) {
  for (const SlotStart& slot_start : batch.slot_starts) start(slot_start);
  for (const BlockAppend& append : batch.block_appends) {
    block_tables_[table_begin(append.slot, append.group) + static_cast<size_t>(append.index)] =
        append.block;
  }
}

void SlotTable::start(const SlotStart& start) {
  Entry& slot = entries_[static_cast<size_t>(start.slot)];
  slot.sampling = start.sampling;
  slot.last_token = start.token_ids.empty() ? 0 : start.token_ids.back();
  slot.num_history = 0;
  slot.adapter = start.adapter;
  if (!slot.sampling.has_penalties()) return;
  TokenCount* const history = history_of(start.slot);
  for (size_t i = 0; i < start.token_ids.size(); ++i) {
    const int32_t id = start.token_ids[i];
    int32_t& index = index_of_[static_cast<size_t>(id)];
    if (index < 0) {
      TGI_CHECK(slot.num_history < history_capacity_);
      index = slot.num_history++;
      history[index] = {.id = id, .output_count = 0};
    }
    if (static_cast<int32_t>(i) >= start.num_prompt_tokens) ++history[index].output_count;
  }
  for (int32_t i = 0; i < slot.num_history; ++i) {
    index_of_[static_cast<size_t>(history[i].id)] = -1;
  }
}

void SlotTable::record(int32_t slot_index, int32_t token_id) {
  Entry& slot = entries_[static_cast<size_t>(slot_index)];
  slot.last_token = token_id;
  if (!slot.sampling.has_penalties()) return;
  TokenCount* const begin = history_of(slot_index);
  TokenCount* const end = begin + slot.num_history;
  TokenCount* const found =
      std::find_if(begin, end, [&](const TokenCount& count) { return count.id == token_id; });
  if (found != end) {
    ++found->output_count;
  } else if (slot.num_history < history_capacity_) {
    *found = {.id = token_id, .output_count = 1};
    ++slot.num_history;
  }
}

}  // namespace tgi
