// What the vocabulary has to say about one state of a rule, wherever the rule is called from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tgi::guide {

struct StateMask {
  // The tokens whose bytes stay within the rule or end exactly where it may be left: as bits where
  // they are many, else as a list.
  std::vector<uint32_t> bits;
  std::vector<int32_t> tokens;

  // Where the rule may be left inside a token: the children of those nodes of the trie, by their
  // byte. Those of byte b: leave_nodes[leave_begin[b]] up to leave_begin[b + 1].
  std::vector<int32_t> leave_begin;  // 257, or empty where there are none
  std::vector<int32_t> leave_nodes;

  bool knows_leaves = false;  // false: they were not asked for

  // The longest way out of the rule, in bytes, from where one of the tokens may lead.
  int32_t max_rest = 0;

  std::span<const int32_t> leaving_by(size_t byte) const {
    const auto begin = static_cast<size_t>(leave_begin[byte]);
    return std::span(leave_nodes).subspan(begin, static_cast<size_t>(leave_begin[byte + 1]) - begin);
  }

  size_t num_bytes() const {
    return sizeof(StateMask) +
           4 * (bits.size() + tokens.size() + leave_begin.size() + leave_nodes.size());
  }
};

}  // namespace tgi::guide
