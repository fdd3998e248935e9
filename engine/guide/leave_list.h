// Helpers of the machine's masks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/guide/state_mask.h"
#include "engine/guide/vocabulary.h"

namespace tgi::guide {

// Has what is needed soon brought near.
inline void prefetch(const TokenTrie::Node& node) {
  __builtin_prefetch(&node);
}

inline void set_bit(std::span<uint32_t> bits, int32_t id) {
  bits[static_cast<size_t>(id) / 32] |= uint32_t{1} << (static_cast<uint32_t>(id) % 32);
}

// Lists the children of the nodes by their bytes; rounds: of each node, or empty. A range is all
// that is below the node before it.
inline std::shared_ptr<const LeaveList> list_leaves(const TokenTrie& trie,
                                                    const std::vector<int32_t>& nodes,
                                                    const std::vector<uint16_t>& rounds,
                                                    std::vector<LeaveList::Range> ranges) {
  auto list = std::make_shared<LeaveList>();
  list->ranges = std::move(ranges);
  for (const LeaveList::Range& range : list->ranges) {
    const TokenTrie::Node& below = trie.nodes[static_cast<size_t>(range.first) - 1];
    list->range_ascii[0] |= below.ascii[0];
    list->range_ascii[1] |= below.ascii[1];
    list->ranges_have_others |= below.leads != 0;
  }
  const auto for_children = [&](auto visit) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto node = static_cast<size_t>(nodes[i]);
      const auto last = static_cast<size_t>(trie.first_child[node + 1]);
      for (auto child = static_cast<size_t>(trie.first_child[node]); child < last; ++child)
        visit(i, size_t{trie.child_bytes[child]}, trie.children[child]);
    }
  };
  list->begin.assign(257, 0);
  for_children([&](size_t /*i*/, size_t byte, int32_t /*child*/) { ++list->begin[byte + 1]; });
  for (size_t byte = 0; byte < 256; ++byte) list->begin[byte + 1] += list->begin[byte];
  const auto size = static_cast<size_t>(list->begin[256]);
  list->nodes.resize(size);
  if (!rounds.empty()) list->rounds.resize(size);
  std::vector<int32_t> fill = list->begin;
  for_children([&](size_t i, size_t byte, int32_t child) {
    const auto at = static_cast<size_t>(fill[byte]++);
    list->nodes[at] = child;
    if (!rounds.empty()) list->rounds[at] = rounds[i];
  });
  return list;
}

}  // namespace tgi::guide
