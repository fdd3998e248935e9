#include "engine/runtime/drafters/draft_slots.h"

#include <algorithm>

namespace tgi {

SamplingParams draws_of(const SamplingParams* sampling) {
  if (sampling == nullptr) return {};
  SamplingParams out = *sampling;
  out.repetition_penalty = 1.0F;
  out.frequency_penalty = 0.0F;
  out.presence_penalty = 0.0F;
  out.logit_bias.clear();
  out.watermark = false;
  out.top_n_tokens = 0;
  return out;
}

DraftSlots::DraftSlots(int32_t num_slots,
                       int32_t num_blocks,
                       int32_t block_size,
                       const KvGroups& groups)
    : kv_cache_(num_blocks, block_size, groups) {
  for (int32_t slot = num_slots; slot-- > 0;) free_slots_.push_back(slot);
}

DraftSlots::~DraftSlots() = default;

// Of those that hold nothing for this turn; null: there is none.
DraftSlots::Hold* DraftSlots::longest_unused() const {
  const auto found = std::ranges::min_element(holders_, {}, &Hold::last_turn_);
  return found == holders_.end() || (*found)->last_turn_ == turn_ ? nullptr : *found;
}

bool DraftSlots::take(Hold& hold) {
  hold.last_turn_ = turn_;
  if (hold.has_slot()) return true;
  if (free_slots_.empty()) {
    Hold* const other = longest_unused();
    if (other == nullptr) return false;
    drop(*other);
  }
  hold.slot_ = free_slots_.back();
  free_slots_.pop_back();
  holders_.push_back(&hold);
  return true;
}

bool DraftSlots::grow(Hold& hold, int32_t num_tokens) {
  while (!kv_cache_.grow(hold.lease_, num_tokens)) {
    Hold* const other = longest_unused();
    if (other == nullptr) return false;
    drop(*other);
  }
  return true;
}

void DraftSlots::drop(Hold& hold) {
  if (!hold.has_slot()) return;
  hold.lease_.reset();
  free_slots_.push_back(hold.slot_);
  std::erase(holders_, &hold);
  hold.slot_ = -1;
  hold.num_slot_places_ = 0;
  hold.is_started_ = false;
}

void DraftSlots::leave_window(Hold& hold, int32_t num_tokens) {
  kv_cache_.leave_window(hold.lease_, num_tokens);
}

void DraftSlots::announce(Hold& hold, const SamplingParams* sampling, Batch& batch) {
  if (!hold.is_started_) {
    batch.slot_starts.push_back({.slot = hold.slot_,
                                 .sampling = draws_of(sampling),
                                 .token_ids = {},
                                 .num_prompt_tokens = 0,
                                 .adapter = 0});
    hold.is_started_ = true;
  }
  for (int32_t i = hold.num_slot_places_; i < hold.lease_.length(); ++i) {
    for (int32_t group = 0; group < kv_cache_.groups().num_groups(); ++group) {
      const int32_t block = hold.lease_.block(i, group);
      if (block == kNoBlock) continue;
      batch.block_appends.push_back(
          {.slot = hold.slot_, .index = i, .block = block, .group = group});
    }
  }
  hold.num_slot_places_ = hold.lease_.length();
}

}  // namespace tgi
