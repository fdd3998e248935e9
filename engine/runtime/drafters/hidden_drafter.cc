#include "engine/runtime/drafters/hidden_drafter.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "engine/runtime/drafters/draft_rows.h"

namespace tgi {

SlotLayout heads_slots(const DrafterSizes& sizes, int32_t vocab_size, int32_t max_cols) {
  return {.num_slots = sizes.max_running,
          .max_blocks_per_slot = 1,
          .max_batch_tokens = sizes.max_running,
          .vocab_size = vocab_size,
          .block_size = sizes.block_size,
          .max_matmul_cols = max_cols,
          .num_heads = 1,
          .num_kv_heads = 1,
          .head_dim = 16};
}

HiddenDrafter::HiddenDrafter(std::unique_ptr<Device> device,
                             std::unique_ptr<DraftHeads> heads,
                             const SlotLayout& slots)
    : device_(std::move(device)), heads_(std::move(heads)), max_rows_(slots.num_slots) {
  const Tensor input = heads_->input();
  TGI_CHECK(input.dtype == device_->info().activation_dtype && input.stride == input.cols);
  // No head attends to anything.
  device_->allocate_state({.num_layers = 0,
                           .num_kv_heads = 1,
                           .head_dim = slots.head_dim,
                           .block_size = slots.block_size,
                           .num_blocks = 1,
                           .dtype = device_->info().activation_dtype},
                          slots);
}

void HiddenDrafter::draft(std::span<const Wanted> wanted) {
  rows_.clear();
  const Tensor input = heads_->input();
  for (const Wanted& each : wanted) {
    each.draft_ids->clear();
    const bool is_known = static_cast<int64_t>(each.hidden.size()) == input.cols;
    if (is_known && each.max_tokens > 0 && std::ssize(rows_) < max_rows_) rows_.push_back(&each);
  }
  if (rows_.empty()) return;
  // Rows that are done leave from the end.
  std::ranges::stable_sort(rows_, std::ranges::greater{}, &Wanted::max_tokens);
  hidden_.clear();
  for (const Wanted* const each : rows_)
    hidden_.insert(hidden_.end(), each->hidden.begin(), each->hidden.end());
  send_rows(*device_, hidden_, input, rounded_);
  for (int32_t head = 0; head < heads_->num_heads(); ++head) {
    while (!rows_.empty() && rows_.back()->max_tokens <= head) rows_.pop_back();
    if (rows_.empty()) break;
    run_head(head);
  }
}

void HiddenDrafter::run_head(int32_t head) {
  batch_.clear();
  // All draw the likeliest token, ever.
  for (int32_t slot = 0; slot < max_rows_ && !slots_are_started_; ++slot) {
    batch_.slot_starts.push_back(
        {.slot = slot, .sampling = {}, .token_ids = {}, .num_prompt_tokens = 0, .adapter = 0});
  }
  slots_are_started_ = true;
  for (const Wanted* const each : rows_) {
    const int32_t row = batch_.num_tokens();
    const std::vector<int32_t>& drafts = *each->draft_ids;
    batch_.token_ids.push_back(drafts.empty() ? each->token_ids.back() : drafts.back());
    batch_.positions.push_back(0);
    batch_.slots.push_back(row);
    batch_.cu_seqlens_q.push_back(row + 1);
    batch_.context_lens.push_back(1);
    batch_.sample_rows.push_back({.row = row, .slot = row, .position = 1});
  }
  heads_->choose(head);
  const StepResult& result = run_step(*device_, batch_, *heads_);
  for (size_t i = 0; i < rows_.size(); ++i) {
    rows_[i]->draft_ids->push_back(result.sampled[i].token.id);
  }
}

}  // namespace tgi
