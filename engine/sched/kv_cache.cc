#include "engine/sched/kv_cache.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace tgi {

KvLease::KvLease(KvLease&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)),
      blocks_(std::exchange(other.blocks_, {})),
      cursor_(std::exchange(other.cursor_, {})) {}

KvLease& KvLease::operator=(KvLease&& other) noexcept {
  if (this != &other) {
    reset();
    owner_ = std::exchange(other.owner_, nullptr);
    blocks_ = std::exchange(other.blocks_, {});
    cursor_ = std::exchange(other.cursor_, {});
  }
  return *this;
}

void KvLease::reset() {
  if (owner_ != nullptr) owner_->give_back(blocks_, false);
  owner_ = nullptr;
  blocks_.clear();
  cursor_ = {};
}

void KvLease::drop_unused() {
  if (owner_ != nullptr) owner_->give_back(blocks_, true);
  blocks_.clear();
  reset();
}

KvCache::KvCache(int32_t num_blocks, int32_t block_size)
    : block_size_(block_size), allocator_(num_blocks), radix_(block_size, allocator_) {}

KvLease KvCache::match(int64_t adapter, std::span<const int32_t> token_ids, int32_t max_tokens) {
  KvLease lease;
  lease.owner_ = this;
  lease.cursor_ = radix_.match(adapter, token_ids, max_tokens / block_size_, lease.blocks_);
  return lease;
}

int32_t KvCache::extend_match(int64_t adapter,
                              std::span<const int32_t> token_ids,
                              int32_t max_tokens,
                              KvLease& lease) {
  if (radix_.num_matching_blocks(adapter, token_ids) <= lease.num_blocks()) return 0;
  KvLease longer = match(adapter, token_ids, max_tokens);
  const int32_t gained = longer.num_blocks() - lease.num_blocks();
  if (gained <= 0) {
    longer.drop_unused();
    return 0;
  }
  // The sequence keeps its own blocks, whose indices the device already has, and takes over only
  // the new ones.
  const auto first_new = longer.blocks_.begin() + lease.num_blocks();
  lease.blocks_.insert(lease.blocks_.end(), first_new, longer.blocks_.end());
  longer.blocks_.erase(first_new, longer.blocks_.end());
  lease.cursor_ = longer.cursor_;
  longer.drop_unused();
  return gained * block_size_;
}

bool KvCache::grow(KvLease& lease, int32_t num_tokens) {
  const int32_t needed = blocks_for(num_tokens) - lease.num_blocks();
  if (needed <= 0) return true;
  const int32_t missing = needed - allocator_.num_free();
  if (missing > 0) {
    if (missing > allocator_.num_cached_only()) return false;
    // Fewer may come back when a cached block sits above one that is leased; what was evicted stays
    // free.
    if (radix_.evict(missing) < missing) return false;
  }
  lease.owner_ = this;
  for (int32_t i = 0; i < needed; ++i) lease.blocks_.push_back(allocator_.take().value());
  return true;
}

int32_t KvCache::num_missing_blocks(const KvLease& lease, int32_t num_tokens) const {
  const int32_t needed = blocks_for(num_tokens) - lease.num_blocks();
  return std::max(needed - num_free() - num_cached(), 0);
}

void KvCache::publish(int64_t adapter,
                      std::span<const int32_t> token_ids,
                      int32_t num_computed_tokens,
                      KvLease& lease) {
  const int32_t num_blocks = std::min(num_computed_tokens / block_size_, lease.num_blocks());
  radix_.publish(adapter, token_ids, lease.blocks_, num_blocks, lease.cursor_);
}

void KvCache::give_back(const std::vector<int32_t>& blocks, bool unused) {
  // Last block first: the free list then hands them out in order again.
  for (auto it = blocks.rbegin(); it != blocks.rend(); ++it) {
    if (has_steps_in_flight() && !unused) {
      allocator_.retire(*it);
      retiring_.push_back({last_submitted_, *it});
    } else {
      allocator_.release(*it);
    }
  }
}

void KvCache::step_retired(uint64_t step) {
  TGI_CHECK(step > last_retired_ && step <= last_submitted_);
  last_retired_ = step;
  while (!retiring_.empty() && retiring_.front().step <= step) {
    allocator_.release_retired(retiring_.front().block);
    retiring_.pop_front();
  }
}

void KvCache::check_integrity() const {
  allocator_.check_integrity();
  radix_.check_integrity();
}

}  // namespace tgi
