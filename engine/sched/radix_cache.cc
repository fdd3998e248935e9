#include "engine/sched/radix_cache.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace tgi {

RadixCache::RadixCache(int32_t block_size, BlockAllocator& allocator)
    : block_size_(block_size), allocator_(allocator) {}

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
  const size_t limit = std::min(run.blocks.size() - static_cast<size_t>(from), rest.size() / block);
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
    if (offset < static_cast<int32_t>(at.blocks.size())) {
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

  const size_t first = blocks.size();
  blocks.resize(first + static_cast<size_t>(cursor.num_blocks));
  int32_t end = cursor.num_blocks;
  for (int32_t id = cursor.node; id >= 0; id = node(id).parent) {
    const Node& run = node(id);
    for (int32_t i = run.num_before; i < end; ++i) {
      blocks[first + static_cast<size_t>(i)] = run.blocks[static_cast<size_t>(i - run.num_before)];
    }
    end = std::min(end, run.num_before);
  }
  for (size_t i = first; i < blocks.size(); ++i) allocator_.lease(blocks[i]);
  touch_path(cursor.node);
  return cursor;
}

int32_t RadixCache::num_matching_blocks(int64_t adapter, std::span<const int32_t> token_ids) const {
  Cursor cursor;
  cursor.node = find_root(adapter);
  if (cursor.node < 0) return 0;
  cursor.generation = node(cursor.node).generation;
  walk(token_ids, INT32_MAX, cursor);
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
  lower.blocks.assign(upper.blocks.begin() + num_kept, upper.blocks.end());
  lower.children = std::move(children);
  for (const auto& [child_key, child] : lower.children) node(child).parent = lower_id;
  upper.token_ids.resize(kept_tokens);
  upper.blocks.resize(kept);

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
  walk(token_ids, num_blocks, cursor);
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
    for (int32_t i = begin; i < num_blocks; ++i) {
      const int32_t block = blocks[static_cast<size_t>(i)];
      allocator_.cache(block);
      run.blocks.push_back(block);
    }
    num_cached_blocks_ += num_blocks - begin;
    cursor.num_blocks = num_blocks;
  }
  touch_path(cursor.node);
}

int32_t RadixCache::evict(int32_t num_blocks) {
  int32_t num_evicted = 0;
  int32_t id = coldest_;
  while (id >= 0 && num_evicted < num_blocks) {
    Node& leaf = node(id);
    int32_t next = leaf.warmer;
    if (leaf.children.empty()) {
      while (num_evicted < num_blocks && !leaf.blocks.empty() &&
             !allocator_.is_leased(leaf.blocks.back())) {
        allocator_.uncache(leaf.blocks.back());
        leaf.blocks.pop_back();
        ++num_evicted;
      }
      const size_t num_tokens = leaf.blocks.size() * static_cast<size_t>(block_size_);
      if (leaf.token_ids.size() != num_tokens) {
        leaf.token_ids.resize(num_tokens);
        ++leaf.generation;  // another run may grow here: cursors must walk again
      }
      if (leaf.blocks.empty()) {
        // The parent is warmer than its children, but other nodes may lie between; it is reached
        // later on this walk.
        drop_node(id);
      }
    }
    id = next;
  }
  num_cached_blocks_ -= num_evicted;
  return num_evicted;
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
  std::vector<bool> seen(static_cast<size_t>(allocator_.num_blocks()));
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& at = nodes_[i];
    if (!at.alive) continue;
    TGI_CHECK(at.token_ids.size() == at.blocks.size() * static_cast<size_t>(block_size_));
    for (const auto& [key, child] : at.children) {
      TGI_CHECK(node(child).alive && node(child).parent == static_cast<int32_t>(i));
      TGI_CHECK(node(child).key == key &&
                node(child).num_before == end_of(static_cast<int32_t>(i)));
    }
    for (const int32_t block : at.blocks) {
      TGI_CHECK(allocator_.is_cached(block) && !seen[static_cast<size_t>(block)]);
      seen[static_cast<size_t>(block)] = true;
    }
    num_blocks += static_cast<int32_t>(at.blocks.size());
    if (at.parent < 0) {
      TGI_CHECK(at.blocks.empty());
    } else {
      TGI_CHECK(!at.blocks.empty());
      ++num_nodes;
    }
  }
  TGI_CHECK(num_blocks == num_cached_blocks_);
  int32_t num_listed = 0;
  for (int32_t id = coldest_; id >= 0; id = node(id).warmer) ++num_listed;
  TGI_CHECK(num_listed == num_nodes);
}

}  // namespace tgi
