#include "engine/text/tokenizer/piece_trie.h"

#include <algorithm>
#include <cstddef>

namespace tgi {

PieceTrie::PieceTrie(std::vector<Entry> entries) {
  std::erase_if(entries, [](const Entry& entry) { return entry.text.empty(); });
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.text < b.text; });
  // A node stands for the entries of a range, which begin alike. Breadth first: pending[i] is of
  // nodes_[i].
  struct Range {
    size_t begin, end, depth;
  };
  std::vector<Range> pending = {{0, entries.size(), 0}};
  nodes_.resize(1);
  for (size_t index = 0; index < pending.size(); ++index) {
    auto [begin, end, depth] = pending[index];
    if (begin < end && entries[begin].text.size() == depth) {  // the shortest comes first
      nodes_[index].value = entries[begin].value;
      ++begin;
    }
    nodes_[index].first_child = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const char byte = entries[begin].text[depth];
      size_t last = begin + 1;
      while (last < end && entries[last].text[depth] == byte) ++last;
      pending.push_back({begin, last, depth + 1});
      nodes_.emplace_back().label = static_cast<unsigned char>(byte);
      ++nodes_[index].num_children;
      begin = last;
    }
  }
  first_.fill(kNone);
  const Node& root = nodes_[kRoot];
  for (uint32_t i = 0; i < root.num_children; ++i) {
    first_[nodes_[root.first_child + i].label] = root.first_child + i;
  }
}

uint32_t PieceTrie::find_child(const Node& node, unsigned char label) const {
  uint32_t low = node.first_child;
  uint32_t high = low + node.num_children;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (nodes_[middle].label == label) return middle;
    if (nodes_[middle].label < label) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return kNone;
}

uint32_t PieceTrie::descend(uint32_t node, std::string_view text) const {
  for (size_t i = 0; i < text.size() && node != kNone; ++i) node = child(node, text[i]);
  return node;
}

}  // namespace tgi
