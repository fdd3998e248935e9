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
#include "engine/tensor/kv_groups.h"

namespace tgi {

class KvCache;

// Move-only right to a sequence's blocks. It goes by the blocks of tokens that a context consists
// of: for each of them every group has a block, but windowed groups only from first_windowed() on.
// The destructor gives them back.
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

  int32_t length() const { return length_; }  // in blocks of tokens
  int32_t num_blocks() const;
  int32_t first_windowed() const { return first_windowed_; }
  // kNoBlock where a window has left it behind.
  int32_t block(int32_t index, int32_t group) const;

 private:
  friend class KvCache;
  KvCache* owner_ = nullptr;
  int32_t length_ = 0;
  int32_t first_windowed_ = 0;
  std::vector<int32_t> blocks_;  // (length, num_groups)
  RadixCache::Cursor cursor_;
};

class KvCache {
 public:
  KvCache(int32_t num_blocks, int32_t block_size, const KvGroups& groups = {});

  int32_t block_size() const { return block_size_; }
  const KvGroups& groups() const { return groups_; }
  int32_t blocks_of_tokens(int32_t num_tokens) const {
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

  // Gives back what the windowed groups hold and no token from num_computed_tokens on sees. Where
  // it was published it stays findable until its place is wanted.
  void leave_window(KvLease& lease, int32_t num_computed_tokens);

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
  // The prefixes of an adapter that is no more. False: some are leased still, try again later.
  bool forget(int64_t adapter) { return radix_.forget(adapter); }
  void check_integrity() const;

 private:
  friend class KvLease;
  void give_back(const KvLease& lease, bool unused);
  int32_t num_needed(const KvLease& lease, int32_t num_tokens) const;
  void release_windowed(KvLease& lease, int32_t end);

  struct Retiring {
    uint64_t step;
    int32_t block;
    bool ends_window;  // it is of the last windowed group
  };

  const int32_t block_size_;
  const KvGroups groups_;
  BlockAllocator allocator_;
  RadixCache radix_;
  std::deque<Retiring> retiring_;
  uint64_t last_submitted_ = 0;
  uint64_t last_retired_ = 0;
};

inline int32_t KvLease::block(int32_t index, int32_t group) const {
  return blocks_[static_cast<size_t>(index * owner_->groups_.num_groups() + group)];
}

}  // namespace tgi
