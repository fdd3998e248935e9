#include "engine/sched/kv_cache.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace tgi {

KvLease::KvLease(KvLease&& other) noexcept {
  *this = std::move(other);
}

KvLease& KvLease::operator=(KvLease&& other) noexcept {
  if (this != &other) {
    reset();
    owner_ = std::exchange(other.owner_, nullptr);
    length_ = std::exchange(other.length_, 0);
    first_windowed_ = std::exchange(other.first_windowed_, 0);
    blocks_ = std::exchange(other.blocks_, {});
    cursor_ = std::exchange(other.cursor_, {});
  }
  return *this;
}

void KvLease::reset() {
  if (owner_ != nullptr) owner_->give_back(*this, false);
  owner_ = nullptr;
  length_ = 0;
  first_windowed_ = 0;
  blocks_.clear();
  cursor_ = {};
}

void KvLease::drop_unused() {
  if (owner_ != nullptr) owner_->give_back(*this, true);
  owner_ = nullptr;
  reset();
}

int32_t KvLease::num_blocks() const {
  if (owner_ == nullptr) return 0;
  const KvGroups& groups = owner_->groups_;
  return length_ * groups.num_full + (length_ - first_windowed_) * groups.num_windowed;
}

KvCache::KvCache(int32_t num_blocks, int32_t block_size, const KvGroups& groups)
    : block_size_(block_size),
      groups_(groups),
      allocator_(num_blocks),
      radix_(block_size, groups, allocator_) {}

KvLease KvCache::match(int64_t adapter, std::span<const int32_t> token_ids, int32_t max_tokens) {
  KvLease lease;
  lease.owner_ = this;
  lease.cursor_ = radix_.match(adapter, token_ids, max_tokens / block_size_, lease.blocks_);
  lease.length_ = lease.cursor_.num_blocks;
  lease.first_windowed_ = radix_.first_needed(lease.length_);
  return lease;
}

int32_t KvCache::extend_match(int64_t adapter,
                              std::span<const int32_t> token_ids,
                              int32_t max_tokens,
                              KvLease& lease) {
  if (radix_.num_matching_blocks(adapter, token_ids) <= lease.length()) return 0;
  KvLease longer = match(adapter, token_ids, max_tokens);
  const int32_t gained = longer.length() - lease.length();
  if (gained <= 0) {
    longer.drop_unused();
    return 0;
  }
  // The sequence keeps its own blocks, whose indices the device already has, and takes over only
  // the new ones.
  release_windowed(lease, longer.first_windowed());
  const auto first_new = longer.blocks_.begin() + std::ssize(lease.blocks_);
  lease.blocks_.insert(lease.blocks_.end(), first_new, longer.blocks_.end());
  longer.blocks_.erase(first_new, longer.blocks_.end());
  lease.owner_ = this;
  lease.length_ = longer.length_;
  lease.first_windowed_ = longer.first_windowed_;
  lease.cursor_ = longer.cursor_;
  longer.drop_unused();
  return gained * block_size_;
}

int32_t KvCache::num_needed(const KvLease& lease, int32_t num_tokens) const {
  return (blocks_of_tokens(num_tokens) - lease.length()) * groups_.num_groups();
}

bool KvCache::grow(KvLease& lease, int32_t num_tokens) {
  const int32_t needed = num_needed(lease, num_tokens);
  if (needed <= 0) return true;
  const int32_t missing = needed - allocator_.num_free();
  if (missing > 0) {
    if (missing > allocator_.num_cached_only()) return false;
    // Fewer may come back when a cached block sits above one that is leased; what was evicted stays
    // free.
    if (radix_.evict(missing) < missing) return false;
  }
  lease.owner_ = this;
  lease.length_ = blocks_of_tokens(num_tokens);
  for (int32_t i = 0; i < needed; ++i) lease.blocks_.push_back(allocator_.take().value());
  return true;
}

int32_t KvCache::num_missing_blocks(const KvLease& lease, int32_t num_tokens) const {
  return std::max(num_needed(lease, num_tokens) - num_free() - num_cached(), 0);
}

void KvCache::publish(int64_t adapter,
                      std::span<const int32_t> token_ids,
                      int32_t num_computed_tokens,
                      KvLease& lease) {
  const int32_t num_blocks = std::min(num_computed_tokens / block_size_, lease.length());
  radix_.publish(adapter, token_ids, lease.blocks_, num_blocks, lease.cursor_);
}

void KvCache::leave_window(KvLease& lease, int32_t num_computed_tokens) {
  if (groups_.num_windowed == 0) return;
  // No step in flight sees it either: it computes tokens from num_computed_tokens on.
  release_windowed(lease,
                   static_cast<int32_t>(groups_.first_needed(num_computed_tokens) / block_size_));
}

// What windowed groups hold before block `end` of the context.
void KvCache::release_windowed(KvLease& lease, int32_t end) {
  for (; lease.first_windowed_ < std::min(end, lease.length_); ++lease.first_windowed_) {
    const int32_t first = lease.first_windowed_ * groups_.num_groups();
    int32_t last_block = kNoBlock;
    for (int32_t group = groups_.num_full; group < groups_.num_groups(); ++group) {
      int32_t& block = lease.blocks_[static_cast<size_t>(first + group)];
      allocator_.release(block);
      last_block = std::exchange(block, kNoBlock);
    }
    if (last_block != kNoBlock) radix_.window_left(last_block);
  }
}

void KvCache::give_back(const KvLease& lease, bool unused) {
  const int32_t num_groups = groups_.num_groups();
  // Last block first: the free list then hands them out in order again.
  for (auto i = static_cast<int32_t>(lease.blocks_.size()) - 1; i >= 0; --i) {
    const int32_t block = lease.blocks_[static_cast<size_t>(i)];
    if (block == kNoBlock) continue;
    const bool ends_window = groups_.num_windowed > 0 && (i + 1) % num_groups == 0;
    if (has_steps_in_flight() && !unused) {
      allocator_.retire(block);
      retiring_.push_back({last_submitted_, block, ends_window});
    } else {
      allocator_.release(block);
      if (ends_window) radix_.window_ended(block);
    }
  }
}

void KvCache::step_retired(uint64_t step) {
  TGI_CHECK(step > last_retired_ && step <= last_submitted_);
  last_retired_ = step;
  while (!retiring_.empty() && retiring_.front().step <= step) {
    const Retiring& retired = retiring_.front();
    allocator_.release_retired(retired.block);
    if (retired.ends_window) radix_.window_ended(retired.block);
    retiring_.pop_front();
  }
}

void KvCache::check_integrity() const {
  allocator_.check_integrity();
  radix_.check_integrity();
}

}  // namespace tgi
