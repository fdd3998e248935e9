// What RadixCache does for groups of layers with a window: radix_cache.h.
#include "engine/sched/radix_cache.h"

#include <span>

namespace tgi {

// Back to where all is there that the next token needs of the windowed groups.
void RadixCache::retreat(Cursor& cursor) const {
  if (groups_.num_windowed == 0) return;
  int32_t end = cursor.num_blocks;
  int32_t id = cursor.node;
  for (int32_t place = end - 1; place >= first_needed(end); --place) {
    while (node(id).num_before > place) id = node(id).parent;
    if (!has_windowed(id, place)) end = place;
  }
  cursor.num_blocks = end;
  while (node(cursor.node).parent >= 0 && node(cursor.node).num_before >= end) {
    cursor.node = node(cursor.node).parent;
  }
  cursor.generation = node(cursor.node).generation;
}

// Puts the windowed blocks among `blocks`, those of all groups, at a place that has none.
void RadixCache::add_windowed(int32_t id, int32_t place, std::span<const int32_t> blocks) {
  if (groups_.num_windowed == 0 || blocks.back() == kNoBlock) return;
  const auto at = blocks_at(id, place);
  for (size_t group = static_cast<size_t>(groups_.num_full); group < at.size(); ++group) {
    allocator_.cache(blocks[group]);
    at[group] = blocks[group];
  }
  places_[static_cast<size_t>(at.back())] = {.node = id, .place = place};
  num_cached_blocks_ += groups_.num_windowed;
}

void RadixCache::list_unused(int32_t block, BlockList& list) {
  if (allocator_.is_cached(block) && !allocator_.is_leased(block)) list.append(block);
}

void RadixCache::unlist(int32_t block) {
  if (left_.contains(block)) left_.remove(block);
  if (ended_.contains(block)) ended_.remove(block);
}

// The blocks of the windowed groups at a place, which nobody leases.
void RadixCache::drop_windowed(int32_t id, int32_t place) {
  if (groups_.num_windowed == 0 || !has_windowed(id, place)) return;
  const auto at = blocks_at(id, place);
  unlist(at.back());
  for (size_t group = static_cast<size_t>(groups_.num_full); group < at.size(); ++group) {
    allocator_.uncache(at[group]);
    at[group] = kNoBlock;
  }
  num_cached_blocks_ -= groups_.num_windowed;
}

// The first of the list, until `num_blocks` are free; returns how many came free.
int32_t RadixCache::evict_windowed(const BlockList& list, int32_t num_blocks) {
  int32_t num_evicted = 0;
  while (num_evicted < num_blocks && list.first() >= 0) {
    const Place at = places_[static_cast<size_t>(list.first())];
    drop_windowed(at.node, at.place);
    num_evicted += groups_.num_windowed;
  }
  return num_evicted;
}

}  // namespace tgi
