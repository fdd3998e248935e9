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
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/sched/block_allocator.h"

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

  RadixCache(int32_t block_size, BlockAllocator& allocator);

  // Appends to `blocks` the blocks of the longest cached prefix of `token_ids`, at most
  // `max_blocks` of them, and takes a lease of each for the caller. Returns where the match ended.
  Cursor match(int64_t adapter,
               std::span<const int32_t> token_ids,
               int32_t max_blocks,
               std::vector<int32_t>& blocks);

  // How many leading blocks of `token_ids` are cached. Changes nothing, not even the order of
  // eviction.
  int32_t num_matching_blocks(int64_t adapter, std::span<const int32_t> token_ids) const;

  // Publishes blocks[cursor.num_blocks, num_blocks) of a sequence whose first num_blocks *
  // block_size tokens are computed. A block whose tokens are in the tree already (a twin was first)
  // is passed over: the tree keeps the twin's and the sequence keeps its own. REQUIRES: the
  // sequence leases `blocks`.
  void publish(int64_t adapter,
               std::span<const int32_t> token_ids,
               std::span<const int32_t> blocks,
               int32_t num_blocks,
               Cursor& cursor);

  // Gives back up to `num_blocks` of the coldest blocks to the allocator; returns how many were.
  int32_t evict(int32_t num_blocks);

  // Forgets everything no lease holds, as on a change of weights.
  void clear() { evict(INT32_MAX); }

  int32_t num_cached_blocks() const { return num_cached_blocks_; }

  // Walks the whole tree and throws kInternal when something is wrong. For tests and idle moments.
  void check_integrity() const;

 private:
  using Key = uint64_t;  // hash of a child's first block of tokens

  struct Node {
    std::vector<int32_t> token_ids;  // (blocks.size() * block_size)
    std::vector<int32_t> blocks;
    std::unordered_multimap<Key, int32_t> children;
    int32_t parent = -1;
    Key key = 0;             // under which the parent knows it
    int32_t num_before = 0;  // blocks from the root to its start
    uint32_t generation = 0;
    int32_t colder = -1;  // neighbours in the list by last touch; roots are not in it
    int32_t warmer = -1;
    bool alive = false;
  };

  Node& node(int32_t id) { return nodes_[static_cast<size_t>(id)]; }
  const Node& node(int32_t id) const { return nodes_[static_cast<size_t>(id)]; }
  int32_t end_of(int32_t id) const {
    return node(id).num_before + static_cast<int32_t>(node(id).blocks.size());
  }

  int32_t make_node(int32_t parent, Key key, int32_t num_before);
  void drop_node(int32_t id);
  int32_t find_root(int64_t adapter) const;
  int32_t find_child(int32_t id, std::span<const int32_t> rest) const;
  int32_t split(int32_t id, int32_t num_kept);
  Key key_of(std::span<const int32_t> token_ids) const;
  int32_t num_common_blocks(const Node& run, int32_t from, std::span<const int32_t> rest) const;
  void walk(std::span<const int32_t> token_ids, int32_t max_blocks, Cursor& cursor) const;
  bool is_live(const Cursor& cursor) const;
  void touch_path(int32_t id);
  void unlink(int32_t id);

  const int32_t block_size_;
  BlockAllocator& allocator_;
  std::vector<Node> nodes_;
  std::vector<int32_t> free_nodes_;
  std::unordered_map<int64_t, int32_t> roots_;  // by adapter
  int32_t coldest_ = -1;
  int32_t warmest_ = -1;
  int32_t num_cached_blocks_ = 0;
};

}  // namespace tgi
