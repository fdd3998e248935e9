#include "engine/sched/block_allocator.h"

#include "base/error.h"

namespace tgi {

BlockAllocator::BlockAllocator(int32_t num_blocks) : holders_(static_cast<size_t>(num_blocks)) {
  free_.reserve(holders_.size());
  for (int32_t block = num_blocks - 1; block >= 0; --block) free_.push_back(block);
}

std::optional<int32_t> BlockAllocator::take() {
  if (free_.empty()) return std::nullopt;
  const int32_t block = free_.back();
  free_.pop_back();
  holders(block).num_leases = 1;
  return block;
}

template <typename Change>
void BlockAllocator::change(int32_t block, Change change) {
  Holders& entry = holders(block);
  const bool was_retiring = entry.is_retiring();
  change(entry);
  num_retiring_ += static_cast<int32_t>(entry.is_retiring()) - static_cast<int32_t>(was_retiring);
}

void BlockAllocator::lease(int32_t block) {
  change(block, [&](Holders& entry) {
    TGI_CHECK(entry.num_leases > 0 || entry.cached);
    if (entry.num_leases == 0) --num_cached_only_;
    ++entry.num_leases;
  });
}

void BlockAllocator::release(int32_t block) {
  change(block, [&](Holders& entry) {
    TGI_CHECK(entry.num_leases > entry.num_retiring);
    if (--entry.num_leases > 0) return;
    if (entry.cached) {
      ++num_cached_only_;
    } else {
      free_.push_back(block);
    }
  });
}

void BlockAllocator::retire(int32_t block) {
  change(block, [](Holders& entry) {
    TGI_CHECK(entry.num_leases > entry.num_retiring);
    ++entry.num_retiring;
  });
}

void BlockAllocator::release_retired(int32_t block) {
  change(block, [](Holders& entry) {
    TGI_CHECK(entry.num_retiring > 0);
    --entry.num_retiring;
  });
  release(block);
}

void BlockAllocator::cache(int32_t block) {
  Holders& entry = holders(block);
  TGI_CHECK(entry.num_leases > 0 && !entry.cached);
  entry.cached = true;
}

void BlockAllocator::uncache(int32_t block) {
  Holders& entry = holders(block);
  TGI_CHECK(entry.cached);
  entry.cached = false;
  if (entry.num_leases > 0) return;
  --num_cached_only_;
  free_.push_back(block);
}

void BlockAllocator::check_integrity() const {
  int32_t num_leased = 0;
  int32_t num_cached_only = 0;
  int32_t num_retiring = 0;
  for (const Holders& entry : holders_) {
    TGI_CHECK(entry.num_leases >= entry.num_retiring && entry.num_retiring >= 0);
    if (entry.is_retiring()) ++num_retiring;
    if (entry.num_leases > 0) ++num_leased;
    if (entry.num_leases == 0 && entry.cached) ++num_cached_only;
  }
  std::vector<bool> seen(holders_.size());
  for (const int32_t block : free_) {
    TGI_CHECK(!is_leased(block) && !is_cached(block) && !seen[static_cast<size_t>(block)]);
    seen[static_cast<size_t>(block)] = true;
  }
  TGI_CHECK(num_cached_only == num_cached_only_ && num_retiring == num_retiring_);
  TGI_CHECK(num_free() + num_leased + num_cached_only == num_blocks());
}

}  // namespace tgi
