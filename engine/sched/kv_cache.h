// The paged KV cache as the scheduler sees it: leases of blocks, shared prefixes, and when a block
// is really free. Belongs to the engine thread. Holds no tensors.
//
// A lease that ends while a step is in flight gives its blocks back only when that step has
// retired, because the step may still write them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "engine/sched/block_allocator.h"
#include "engine/sched/radix_cache.h"

namespace tgi {

class KvCache;

// Move-only right to a sequence's blocks, in the order of its tokens. The destructor gives them
// back.
class KvLease {
 public:
  KvLease() = default;
  KvLease(KvLease&& other) noexcept;
  KvLease& operator=(KvLease&& other) noexcept;
  KvLease(const KvLease&) = delete;
  KvLease& operator=(const KvLease&) = delete;
  ~KvLease() { reset(); }

  void reset();
  // Gives the blocks back at once, whatever is in flight. REQUIRES: no step was given them by this
  // lease.
  void drop_unused();
  std::span<const int32_t> blocks() const { return blocks_; }
  int32_t num_blocks() const { return static_cast<int32_t>(blocks_.size()); }

 private:
  friend class KvCache;
  KvCache* owner_ = nullptr;
  std::vector<int32_t> blocks_;
  RadixCache::Cursor cursor_;
};

class KvCache {
 public:
  KvCache(int32_t num_blocks, int32_t block_size);

  int32_t block_size() const { return block_size_; }
  int32_t blocks_for(int32_t num_tokens) const {
    return (num_tokens + block_size_ - 1) / block_size_;
  }

  // A lease of the longest cached prefix, at most max_tokens of it (whole blocks). May be empty;
  // never fails.
  KvLease match(int64_t adapter, std::span<const int32_t> token_ids, int32_t max_tokens);

  // Lets a lease adopt blocks that became cached beyond its end since (a twin computed them).
  // REQUIRES: everything in the lease is computed and num_computed_tokens is a multiple of the
  // block size. Returns the tokens gained.
  int32_t extend_match(int64_t adapter,
                       std::span<const int32_t> token_ids,
                       int32_t max_tokens,
                       KvLease& lease);

  int32_t num_matching_tokens(int64_t adapter, std::span<const int32_t> token_ids) const {
    return radix_.num_matching_blocks(adapter, token_ids) * block_size_;
  }

  // Grows the lease so that it holds num_tokens, evicting cold cached blocks where needed. False:
  // not now; the lease is as it was.
  [[nodiscard]] bool grow(KvLease& lease, int32_t num_tokens);

  // How many more blocks would have to be free or cached for that.
  int32_t num_missing_blocks(const KvLease& lease, int32_t num_tokens) const;

  // The first num_computed_tokens of the sequence are in its blocks: whole ones become findable.
  void publish(int64_t adapter,
               std::span<const int32_t> token_ids,
               int32_t num_computed_tokens,
               KvLease& lease);

  // Steps are numbered from 1 by the caller, in order.
  void step_submitted(uint64_t step) { last_submitted_ = step; }
  void step_retired(uint64_t step);

  int32_t num_blocks() const { return allocator_.num_blocks(); }
  int32_t num_free() const { return allocator_.num_free(); }
  int32_t num_cached() const { return allocator_.num_cached_only(); }  // by the prefix cache alone
  int32_t num_used() const { return allocator_.num_leased(); }
  // Those of the used ones that come back when the steps in flight have retired.
  int32_t num_retiring() const { return allocator_.num_retiring(); }
  bool has_steps_in_flight() const { return last_submitted_ > last_retired_; }

  void clear_prefixes() { radix_.clear(); }
  void check_integrity() const;

 private:
  friend class KvLease;
  void give_back(const std::vector<int32_t>& blocks, bool unused);

  struct Retiring {
    uint64_t step;
    int32_t block;
  };

  const int32_t block_size_;
  BlockAllocator allocator_;
  RadixCache radix_;
  std::deque<Retiring> retiring_;
  uint64_t last_submitted_ = 0;
  uint64_t last_retired_ = 0;
};

}  // namespace tgi
