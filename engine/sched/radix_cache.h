// Which prefixes have their KV computed, and in which blocks: a radix tree over token ids, whole
// blocks only. Belongs to the engine thread. Lookups are a few node hops and one memory compare per
// run of tokens.
//
//   root(adapter) ── [t0..t31 | b0 b1] ─┬─ [t32..t47 | b2]
//                                       └─ [t32'..t79' | b5 b6 b7]
//
// A node is a run of blocks without a branch. A block enters only after its KV was computed, and it
// enters while its sequence is still running: concurrent twins share it at once, generated tokens
// included. A block leaves when it is the tail of a leaf, no lease holds it and it is the coldest
// such. Every touch moves a node and then its ancestors to the warm end of one list, so the cold
// end of that list is always a leaf.
//
// Where layers are in groups, each place of a run has a block of every group. Those of the windowed
// groups may be missing: a prefix is found only as far as the windows of the token behind it are
// there. They come and go together. Those that a running sequence has left behind its window go
// before anything else, the first one left first. Those that it held to its end go with their
// place, or when nothing else can.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/sched/block_allocator.h"
#include "engine/sched/block_list.h"
#include "engine/tensor/kv_groups.h"

namespace tgi {

class RadixCache {
 public:
  // Where a sequence's published prefix ends. Stays safe when the tree changes: a node that is gone
  // is noticed and the prefix walked again.
  struct Cursor {
    int32_t node = -1;
    uint32_t generation = 0;
    int32_t num_blocks = 0;  // from the root to the cursor
  };

  RadixCache(int32_t block_size, const KvGroups& groups, BlockAllocator& allocator);

  // Appends to `blocks` those of the longest cached prefix of `token_ids`, at most `max_blocks`
  // long, (length, num_groups), and takes a lease of each for the caller; of windowed groups only
  // from first_needed(length) on, kNoBlock before. Returns where the match ended.
  Cursor match(int64_t adapter,
               std::span<const int32_t> token_ids,
               int32_t max_blocks,
               std::vector<int32_t>& blocks);

  // How many leading blocks of `token_ids` are cached. Changes nothing, not even the order of
  // eviction.
  int32_t num_matching_blocks(int64_t adapter, std::span<const int32_t> token_ids) const;

  // Publishes blocks[cursor.num_blocks, num_blocks) of a sequence whose first num_blocks *
  // block_size tokens are computed. A block whose tokens are in the tree already (a twin was first)
  // takes the place of the twin's when nobody leases that any more; else the tree keeps the twin's
  // and the sequence its own. REQUIRES: the sequence leases `blocks`, (any length, num_groups); of
  // windowed groups some are kNoBlock.
  void publish(int64_t adapter,
               std::span<const int32_t> token_ids,
               std::span<const int32_t> blocks,
               int32_t num_blocks,
               Cursor& cursor);

  // A sequence has given back the blocks of the windowed groups at one place of its context;
  // `block` is that of the last group. Left: because none of its tokens to come sees them.
  void window_left(int32_t block) { list_unused(block, left_); }
  void window_ended(int32_t block) { list_unused(block, ended_); }

  // The first place whose windowed blocks the token after `num_blocks` places needs.
  int32_t first_needed(int32_t num_blocks) const {
    if (groups_.num_windowed == 0) return 0;
    return static_cast<int32_t>(groups_.first_needed(int64_t{num_blocks} * block_size_) /
                                block_size_);
  }

  // Gives back up to `num_blocks` of the coldest blocks to the allocator, a few more where they go
  // together; returns how many were.
  int32_t evict(int32_t num_blocks);

  // Forgets everything no lease holds, as on a change of weights.
  void clear() { evict(INT32_MAX); }

  // Forgets what this adapter's sequences have published. False: a lease holds some of it, which
  // stays with what is before it.
  bool forget(int64_t adapter);

  int32_t num_cached_blocks() const { return num_cached_blocks_; }

  // Walks the whole tree and throws kInternal when something is wrong. For tests and idle moments.
  void check_integrity() const;

 private:
  using Key = uint64_t;  // hash of a child's first block of tokens

  struct Node {
    std::vector<int32_t> token_ids;  // (length * block_size)
    std::vector<int32_t> blocks;     // (length, num_groups)
    std::unordered_multimap<Key, int32_t> children;
    int32_t parent = -1;
    Key key = 0;             // under which the parent knows it
    int32_t num_before = 0;  // places from the root to its start
    uint32_t generation = 0;
    int32_t colder = -1;  // neighbours in the list by last touch; roots are not in it
    int32_t warmer = -1;
    bool alive = false;
  };

  Node& node(int32_t id) { return nodes_[static_cast<size_t>(id)]; }
  const Node& node(int32_t id) const { return nodes_[static_cast<size_t>(id)]; }
  int32_t length_of(const Node& run) const {
    return static_cast<int32_t>(run.token_ids.size()) / block_size_;
  }
  int32_t end_of(int32_t id) const { return node(id).num_before + length_of(node(id)); }
  // The blocks of all groups at a place, which is counted from the root.
  std::span<int32_t> blocks_at(int32_t id, int32_t place);
  bool has_windowed(int32_t id, int32_t place) const;

  int32_t make_node(int32_t parent, Key key, int32_t num_before);
  void drop_node(int32_t id);
  int32_t find_root(int64_t adapter) const;
  int32_t find_child(int32_t id, std::span<const int32_t> rest) const;
  int32_t split(int32_t id, int32_t num_kept);
  Key key_of(std::span<const int32_t> token_ids) const;
  int32_t num_common_blocks(const Node& run, int32_t from, std::span<const int32_t> rest) const;
  void walk(std::span<const int32_t> token_ids, int32_t max_blocks, Cursor& cursor) const;
  void retreat(Cursor& cursor) const;
  void add_windowed(int32_t id, int32_t place, std::span<const int32_t> blocks);
  void take_over(std::span<const int32_t> blocks, int32_t begin, const Cursor& cursor);
  void drop_windowed(int32_t id, int32_t place);
  void list_unused(int32_t block, BlockList& list);
  void unlist(int32_t block);
  int32_t evict_windowed(const BlockList& list, int32_t num_blocks);
  bool pop_place(int32_t leaf, int32_t& num_evicted);
  template <typename Enough, typename May>
  int32_t evict_tails(Enough enough, May may);
  bool is_live(const Cursor& cursor) const;
  void touch_path(int32_t id);
  void unlink(int32_t id);

  struct Place {
    int32_t node = -1;
    int32_t place = 0;  // from the root
  };

  const int32_t block_size_;
  const KvGroups groups_;
  BlockAllocator& allocator_;
  std::vector<Node> nodes_;
  std::vector<int32_t> free_nodes_;
  std::unordered_map<int64_t, int32_t> roots_;  // by adapter
  int32_t coldest_ = -1;
  int32_t warmest_ = -1;
  int32_t num_cached_blocks_ = 0;
  int32_t num_places_ = 0;  // in all nodes
  // Of windowed groups, by the block of the last one: where it is, and those that no lease holds.
  std::vector<Place> places_;  // by block
  BlockList left_;
  BlockList ended_;
};

}  // namespace tgi
