// KV block ids and who holds them: a free list with reference counts. Holds no memory of the cache
// itself. Belongs to the engine thread.
//
// A block is free (count 0), or held by leases and at most once by the radix cache. In numbers,
// always:
//   num_free + num_leased + num_cached_only == num_blocks
// A lease that has ended but must be waited for is retiring: it counts until it is released.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tgi {

inline constexpr int32_t kNoBlock = -1;

class BlockAllocator {
 public:
  explicit BlockAllocator(int32_t num_blocks);

  // One holder (a lease) of a block nobody held.
  [[nodiscard]] std::optional<int32_t> take();

  void lease(int32_t block);    // one more lease holds it; REQUIRES: somebody holds it already
  void release(int32_t block);  // one lease less; not one of those that retire
  void retire(int32_t block);   // one of its leases has ended and will be released later
  void release_retired(int32_t block);  // now
  void cache(int32_t block);    // the radix cache holds it too; REQUIRES: leased and not cached
  void uncache(int32_t block);  // the radix cache lets go

  bool is_leased(int32_t block) const { return holders(block).num_leases > 0; }
  bool is_cached(int32_t block) const { return holders(block).cached; }

  int32_t num_blocks() const { return static_cast<int32_t>(holders_.size()); }
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t num_cached_only() const { return num_cached_only_; }
  int32_t num_leased() const { return num_blocks() - num_free() - num_cached_only_; }
  // Those of the leased ones whose leases all retire: free or cached alone before long.
  int32_t num_retiring() const { return num_retiring_; }

  // Counts everything anew and throws kInternal when the books are wrong. O(num_blocks): for tests
  // and idle moments.
  void check_integrity() const;

 private:
  struct Holders {
    int32_t num_leases = 0;
    int32_t num_retiring = 0;  // of the leases
    bool cached = false;

    bool is_retiring() const { return num_leases > 0 && num_retiring == num_leases; }
  };
  // Takes note of what change(holders) does to num_retiring().
  template <typename Change>
  void change(int32_t block, Change change);
  const Holders& holders(int32_t block) const { return holders_[static_cast<size_t>(block)]; }
  Holders& holders(int32_t block) { return holders_[static_cast<size_t>(block)]; }

  std::vector<Holders> holders_;  // by block id
  std::vector<int32_t> free_;     // last in, first out: the warmest memory first
  int32_t num_cached_only_ = 0;
  int32_t num_retiring_ = 0;
};

}  // namespace tgi
