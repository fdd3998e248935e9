#include "engine/sched/radix_cache.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace tgi {

static constexpr auto kAnyNode = [](int32_t) { return true; };

RadixCache::RadixCache(int32_t block_size, const KvGroups& groups, BlockAllocator& allocator)
    : block_size_(block_size),
      groups_(groups),
      allocator_(allocator),
      places_(groups.num_windowed > 0 ? static_cast<size_t>(allocator.num_blocks()) : 0),
      left_(static_cast<int32_t>(places_.size())),
      ended_(static_cast<int32_t>(places_.size())) {}

std::span<int32_t> RadixCache::blocks_at(int32_t id, int32_t place) {
  const auto num_groups = static_cast<size_t>(groups_.num_groups());
  Node& run = node(id);
  return std::span(run.blocks)
      .subspan(static_cast<size_t>(place - run.num_before) * num_groups, num_groups);
}

bool RadixCache::has_windowed(int32_t id, int32_t place) const {
  const Node& run = node(id);
  return run.blocks[static_cast<size_t>((place - run.num_before + 1) * groups_.num_groups() - 1)] !=
         kNoBlock;
}

RadixCache::Key RadixCache::key_of(std::span<const int32_t> token_ids) const {
  // FNV-1a over words; a collision only costs a compare.
  Key hash = 1469598103934665603ULL;
  for (int32_t i = 0; i < block_size_; ++i) {
    hash = (hash ^ static_cast<uint32_t>(token_ids[static_cast<size_t>(i)])) * 1099511628211ULL;
  }
  return hash;
}

int32_t RadixCache::make_node(int32_t parent, Key key, int32_t num_before) {
  int32_t id = 0;
  if (free_nodes_.empty()) {
    id = static_cast<int32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    id = free_nodes_.back();
    free_nodes_.pop_back();
  }
  Node& made = node(id);
  made.parent = parent;
  made.key = key;
  made.num_before = num_before;
  made.alive = true;
  if (parent >= 0) node(parent).children.emplace(key, id);
  return id;
}

void RadixCache::drop_node(int32_t id) {
  Node& dropped = node(id);
  TGI_CHECK(dropped.blocks.empty() && dropped.children.empty());
  unlink(id);
  auto [it, end] = node(dropped.parent).children.equal_range(dropped.key);
  while (it != end && it->second != id) ++it;
  TGI_CHECK(it != end);
  node(dropped.parent).children.erase(it);
  dropped.token_ids = {};
  dropped.alive = false;
  ++dropped.generation;
  free_nodes_.push_back(id);
}

int32_t RadixCache::find_root(int64_t adapter) const {
  const auto it = roots_.find(adapter);
  return it == roots_.end() ? -1 : it->second;
}

int32_t RadixCache::num_common_blocks(const Node& run,
                                      int32_t from,
                                      std::span<const int32_t> rest) const {
  const auto block = static_cast<size_t>(block_size_);
  const size_t limit = std::min(static_cast<size_t>(length_of(run) - from), rest.size() / block);
  const int32_t* mine = run.token_ids.data() + static_cast<size_t>(from) * block;
  // One compare for the usual case of a whole run, then block by block to find where it ends.
  if (std::memcmp(mine, rest.data(), limit * block * sizeof(int32_t)) == 0) {
    return static_cast<int32_t>(limit);
  }
  size_t common = 0;
  while (std::memcmp(mine + common * block, rest.data() + common * block,
                     block * sizeof(int32_t)) == 0) {
    ++common;
  }
  return static_cast<int32_t>(common);
}

int32_t RadixCache::find_child(int32_t id, std::span<const int32_t> rest) const {
  if (rest.size() < static_cast<size_t>(block_size_)) return -1;
  auto [it, end] = node(id).children.equal_range(key_of(rest));
  for (; it != end; ++it) {
    if (num_common_blocks(node(it->second), 0, rest.first(static_cast<size_t>(block_size_))) == 1) {
      return it->second;
    }
  }
  return -1;
}

bool RadixCache::is_live(const Cursor& cursor) const {
  if (cursor.node < 0) return false;
  const Node& at = node(cursor.node);
  return at.alive && at.generation == cursor.generation && cursor.num_blocks >= at.num_before;
}

// Moves the cursor as deep as the tokens agree. REQUIRES: the cursor is live and its prefix is that
// of the tokens.
void RadixCache::walk(std::span<const int32_t> token_ids,
                      int32_t max_blocks,
                      Cursor& cursor) const {
  const auto wanted = std::min(token_ids.size() / static_cast<size_t>(block_size_),
                               static_cast<size_t>(std::max(max_blocks, 0)));
  const auto limit = static_cast<int32_t>(wanted);
  const auto rest_at = [&](int32_t num_blocks) {
    return token_ids.first(wanted * static_cast<size_t>(block_size_))
        .subspan(static_cast<size_t>(num_blocks) * static_cast<size_t>(block_size_));
  };
  while (cursor.num_blocks < limit) {
    const Node& at = node(cursor.node);
    const int32_t offset = cursor.num_blocks - at.num_before;
    if (offset < length_of(at)) {
      const int32_t common = num_common_blocks(at, offset, rest_at(cursor.num_blocks));
      cursor.num_blocks += common;
      if (cursor.num_blocks < end_of(cursor.node)) return;
      continue;
    }
    const int32_t child = find_child(cursor.node, rest_at(cursor.num_blocks));
    if (child < 0) return;
    cursor.node = child;
    cursor.generation = node(child).generation;
  }
}

RadixCache::Cursor RadixCache::match(int64_t adapter,
                                     std::span<const int32_t> token_ids,
                                     int32_t max_blocks,
                                     std::vector<int32_t>& blocks) {
  Cursor cursor;
  cursor.node = find_root(adapter);
  if (cursor.node < 0) return cursor;
  cursor.generation = node(cursor.node).generation;
  walk(token_ids, max_blocks, cursor);
  retreat(cursor);

  const auto num_groups = static_cast<size_t>(groups_.num_groups());
  const int32_t needed = first_needed(cursor.num_blocks);
  const size_t first = blocks.size();
  blocks.resize(first + static_cast<size_t>(cursor.num_blocks) * num_groups, kNoBlock);
  int32_t end = cursor.num_blocks;
  for (int32_t id = cursor.node; id >= 0; id = node(id).parent) {
    for (int32_t place = node(id).num_before; place < end; ++place) {
      const auto at = blocks_at(id, place);
      const bool is_seen = place >= needed;
      const size_t count = is_seen ? num_groups : static_cast<size_t>(groups_.num_full);
      std::copy_n(
          at.begin(), count,
          blocks.begin() + static_cast<ptrdiff_t>(first + static_cast<size_t>(place) * num_groups));
      for (size_t group = 0; group < count; ++group) allocator_.lease(at[group]);
      if (groups_.num_windowed > 0 && is_seen) unlist(at.back());
    }
    end = std::min(end, node(id).num_before);
  }
  touch_path(cursor.node);
  return cursor;
}

int32_t RadixCache::num_matching_blocks(int64_t adapter, std::span<const int32_t> token_ids) const {
  Cursor cursor;
  cursor.node = find_root(adapter);
  if (cursor.node < 0) return 0;
  cursor.generation = node(cursor.node).generation;
  walk(token_ids, INT32_MAX, cursor);
  retreat(cursor);
  return cursor.num_blocks;
}

// Cuts a run after its first num_kept blocks; the upper part keeps the id, so that cursors above
// the cut stay right.
int32_t RadixCache::split(int32_t id, int32_t num_kept) {
  const auto kept = static_cast<size_t>(num_kept);
  const size_t kept_tokens = kept * static_cast<size_t>(block_size_);
  const Key key = key_of(std::span(node(id).token_ids).subspan(kept_tokens));
  std::unordered_multimap<Key, int32_t> children;
  std::swap(children, node(id).children);
  const int32_t lower_id = make_node(id, key, node(id).num_before + num_kept);

  Node& upper = node(id);
  Node& lower = node(lower_id);
  lower.token_ids.assign(upper.token_ids.begin() + static_cast<ptrdiff_t>(kept_tokens),
                         upper.token_ids.end());
  const ptrdiff_t kept_blocks = ptrdiff_t{num_kept} * groups_.num_groups();
  lower.blocks.assign(upper.blocks.begin() + kept_blocks, upper.blocks.end());
  lower.children = std::move(children);
  for (const auto& [child_key, child] : lower.children) node(child).parent = lower_id;
  upper.token_ids.resize(kept_tokens);
  upper.blocks.resize(static_cast<size_t>(kept_blocks));
  if (groups_.num_windowed > 0) {
    for (int32_t place = lower.num_before; place < end_of(lower_id); ++place) {
      const int32_t block = blocks_at(lower_id, place).back();
      if (block != kNoBlock) places_[static_cast<size_t>(block)].node = lower_id;
    }
  }

  // Just colder than its parent.
  lower.warmer = id;
  lower.colder = upper.colder;
  if (upper.colder >= 0) {
    node(upper.colder).warmer = lower_id;
  } else {
    coldest_ = lower_id;
  }
  upper.colder = lower_id;
  return lower_id;
}

void RadixCache::publish(int64_t adapter,
                         std::span<const int32_t> token_ids,
                         std::span<const int32_t> blocks,
                         int32_t num_blocks,
                         Cursor& cursor) {
  if (num_blocks <= cursor.num_blocks) return;
  if (!is_live(cursor)) {
    int32_t root = find_root(adapter);
    if (root < 0) {
      root = make_node(-1, 0, 0);
      roots_.emplace(adapter, root);
    }
    cursor = {root, node(root).generation, 0};
  }
  // The node may have been split since: the rest of the prefix is then below it.
  cursor.num_blocks = std::min(cursor.num_blocks, end_of(cursor.node));
  const int32_t first_walked = cursor.num_blocks;
  walk(token_ids, num_blocks, cursor);
  take_over(blocks, first_walked, cursor);
  if (cursor.num_blocks < num_blocks) {
    const int32_t begin = cursor.num_blocks;
    const auto new_tokens = token_ids.subspan(
        static_cast<size_t>(begin) * static_cast<size_t>(block_size_),
        static_cast<size_t>(num_blocks - begin) * static_cast<size_t>(block_size_));
    const bool is_root = node(cursor.node).parent < 0;
    if (begin < end_of(cursor.node)) split(cursor.node, begin - node(cursor.node).num_before);
    if (is_root || !node(cursor.node).children.empty()) {
      cursor.node = make_node(cursor.node, key_of(new_tokens), begin);
      cursor.generation = node(cursor.node).generation;
    }
    Node& run = node(cursor.node);
    run.token_ids.insert(run.token_ids.end(), new_tokens.begin(), new_tokens.end());
    const auto num_groups = static_cast<size_t>(groups_.num_groups());
    run.blocks.resize(run.token_ids.size() / static_cast<size_t>(block_size_) * num_groups,
                      kNoBlock);
    for (int32_t place = begin; place < num_blocks; ++place) {
      const auto mine = blocks.subspan(static_cast<size_t>(place) * num_groups, num_groups);
      const auto at = blocks_at(cursor.node, place);
      for (size_t group = 0; group < static_cast<size_t>(groups_.num_full); ++group) {
        allocator_.cache(mine[group]);
        at[group] = mine[group];
      }
      num_cached_blocks_ += groups_.num_full;
      add_windowed(cursor.node, place, mine);
    }
    num_places_ += num_blocks - begin;
    cursor.num_blocks = num_blocks;
  }
  touch_path(cursor.node);
  // Places that hold no block are never evicted for one, so that they are counted themselves.
  if (num_places_ > allocator_.num_blocks()) {
    evict_tails([this](int32_t) { return num_places_ <= allocator_.num_blocks(); }, kAnyNode);
  }
}

// Of the places from `begin` to the cursor, which a sequence computed although they were there:
// what is missing of them is added, and what nobody else leases is given up for the sequence's own,
// so that it is not held twice.
void RadixCache::take_over(std::span<const int32_t> blocks, int32_t begin, const Cursor& cursor) {
  const auto num_groups = static_cast<size_t>(groups_.num_groups());
  int32_t id = cursor.node;
  for (int32_t place = cursor.num_blocks - 1; place >= begin; --place) {
    while (node(id).num_before > place) id = node(id).parent;
    const auto at = blocks_at(id, place);
    const auto mine = blocks.subspan(static_cast<size_t>(place) * num_groups, num_groups);
    for (size_t group = 0; group < static_cast<size_t>(groups_.num_full); ++group) {
      if (at[group] == mine[group] || allocator_.is_leased(at[group])) continue;
      allocator_.uncache(at[group]);
      allocator_.cache(mine[group]);
      at[group] = mine[group];
    }
    if (groups_.num_windowed == 0 || mine.back() == kNoBlock || at.back() == mine.back()) continue;
    if (has_windowed(id, place) && allocator_.is_leased(at.back())) continue;
    drop_windowed(id, place);
    add_windowed(id, place, mine);
  }
}

// Drops the last place of a leaf, unless a lease holds it.
bool RadixCache::pop_place(int32_t id, int32_t& num_evicted) {
  Node& leaf = node(id);
  const int32_t place = end_of(id) - 1;
  const auto at = blocks_at(id, place);
  const bool is_leased = std::any_of(at.begin(), at.end(), [this](int32_t block) {
    return block != kNoBlock && allocator_.is_leased(block);
  });
  if (is_leased) return false;
  const int32_t num_before = num_cached_blocks_;
  drop_windowed(id, place);
  for (int32_t group = 0; group < groups_.num_full; ++group) {
    allocator_.uncache(at[static_cast<size_t>(group)]);
  }
  num_cached_blocks_ -= groups_.num_full;
  num_evicted += num_before - num_cached_blocks_;
  leaf.blocks.resize(leaf.blocks.size() - at.size());
  leaf.token_ids.resize(leaf.token_ids.size() - static_cast<size_t>(block_size_));
  --num_places_;
  return true;
}

template <typename Enough, typename May>
int32_t RadixCache::evict_tails(Enough enough, May may) {
  int32_t num_evicted = 0;
  int32_t id = coldest_;
  while (id >= 0 && !enough(num_evicted)) {
    const int32_t next = node(id).warmer;
    if (node(id).children.empty() && may(id)) {
      const size_t num_tokens = node(id).token_ids.size();
      while (!enough(num_evicted) && !node(id).token_ids.empty() && pop_place(id, num_evicted)) {
      }
      // Another run may grow here: cursors must walk again.
      if (node(id).token_ids.size() != num_tokens) ++node(id).generation;
      // The parent is warmer than its children, but other nodes may lie between; it is reached
      // later on this walk.
      if (node(id).token_ids.empty()) drop_node(id);
    }
    id = next;
  }
  return num_evicted;
}

int32_t RadixCache::evict(int32_t num_blocks) {
  int32_t num_evicted = evict_windowed(left_, num_blocks);
  const int32_t rest = num_blocks - num_evicted;
  num_evicted += evict_tails([rest](int32_t count) { return count >= rest; }, kAnyNode);
  return num_evicted + evict_windowed(ended_, num_blocks - num_evicted);
}

bool RadixCache::forget(int64_t adapter) {
  const int32_t root = find_root(adapter);
  if (root < 0) return true;
  evict_tails([](int32_t) { return false; },
              [this, root](int32_t id) {
                while (node(id).parent >= 0) id = node(id).parent;
                return id == root;
              });
  Node& emptied = node(root);
  if (!emptied.children.empty()) return false;
  emptied.alive = false;
  ++emptied.generation;
  free_nodes_.push_back(root);
  roots_.erase(adapter);
  return true;
}

void RadixCache::touch_path(int32_t id) {
  for (; id >= 0 && node(id).parent >= 0; id = node(id).parent) {
    unlink(id);
    Node& touched = node(id);
    touched.colder = warmest_;
    touched.warmer = -1;
    if (warmest_ >= 0) node(warmest_).warmer = id;
    warmest_ = id;
    if (coldest_ < 0) coldest_ = id;
  }
}

void RadixCache::unlink(int32_t id) {
  Node& gone = node(id);
  const bool linked = gone.colder >= 0 || gone.warmer >= 0 || coldest_ == id;
  if (!linked) return;
  if (gone.colder >= 0) node(gone.colder).warmer = gone.warmer;
  if (gone.warmer >= 0) node(gone.warmer).colder = gone.colder;
  if (coldest_ == id) coldest_ = gone.warmer;
  if (warmest_ == id) warmest_ = gone.colder;
  gone.colder = gone.warmer = -1;
}

void RadixCache::check_integrity() const {
  int32_t num_blocks = 0;
  int32_t num_nodes = 0;
  int32_t num_places = 0;
  std::vector<bool> seen(static_cast<size_t>(allocator_.num_blocks()));
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& at = nodes_[i];
    if (!at.alive) continue;
    TGI_CHECK(static_cast<int64_t>(at.blocks.size()) ==
              int64_t{length_of(at)} * groups_.num_groups());
    num_places += length_of(at);
    for (const auto& [key, child] : at.children) {
      TGI_CHECK(node(child).alive && node(child).parent == static_cast<int32_t>(i));
      TGI_CHECK(node(child).key == key &&
                node(child).num_before == end_of(static_cast<int32_t>(i)));
    }
    for (size_t j = 0; j < at.blocks.size(); ++j) {
      const int32_t block = at.blocks[j];
      const auto group = static_cast<int32_t>(j) % groups_.num_groups();
      const auto place = at.num_before + static_cast<int32_t>(j) / groups_.num_groups();
      if (block == kNoBlock) {
        TGI_CHECK(groups_.is_windowed(group) && !has_windowed(static_cast<int32_t>(i), place));
        continue;
      }
      TGI_CHECK(allocator_.is_cached(block) && !seen[static_cast<size_t>(block)]);
      seen[static_cast<size_t>(block)] = true;
      ++num_blocks;
      if (groups_.num_windowed == 0 || group + 1 < groups_.num_groups()) continue;
      const Place known = places_[static_cast<size_t>(block)];
      TGI_CHECK(known.node == static_cast<int32_t>(i) && known.place == place);
      TGI_CHECK(left_.contains(block) + ended_.contains(block) == !allocator_.is_leased(block));
    }
    if (at.parent < 0) {
      TGI_CHECK(at.token_ids.empty());
    } else {
      TGI_CHECK(!at.token_ids.empty());
      ++num_nodes;
    }
  }
  TGI_CHECK(num_blocks == num_cached_blocks_ && num_places == num_places_);
  int32_t num_listed = 0;
  for (int32_t id = coldest_; id >= 0; id = node(id).warmer) ++num_listed;
  TGI_CHECK(num_listed == num_nodes);
}

}  // namespace tgi
