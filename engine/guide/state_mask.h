// What the vocabulary has to say about one state of a rule, wherever the rule is called from.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace tgi::guide {

// Where a rule may be left inside a token: the children of those nodes of the trie, by their byte.
struct LeaveList {
  std::vector<int32_t> begin;  // 257: those of byte b are nodes[begin[b]] up to nodes[begin[b + 1]]
  std::vector<int32_t> nodes;
  std::vector<uint16_t> rounds;  // of a loop that were done before, or empty
  // Beside those all nodes of a range that begin a character; `rounds` and the characters on the
  // way to one are the rounds before it.
  struct Range {
    int32_t first = 0;
    int32_t last = 0;  // exclusive
    int32_t rounds = 0;
  };
  std::vector<Range> ranges;
  std::array<uint64_t, 2> range_ascii{};  // the bytes of those nodes: a bit for each of ASCII
  bool ranges_have_others = false;        // ... and others

  bool ranges_may_have(size_t byte) const {
    if (ranges.empty()) return false;
    return byte < 128 ? (range_ascii[byte / 64] >> (byte % 64) & 1) != 0 : ranges_have_others;
  }

  size_t num_bytes() const {
    return 4 * (begin.size() + nodes.size()) + 2 * rounds.size() + sizeof(Range) * ranges.size();
  }
};

struct StateMask {
  // The tokens whose bytes stay within the rule or end exactly where it may be left: as bits where
  // they are many, else as a list.
  std::vector<uint32_t> bits;
  std::vector<int32_t> tokens;

  bool knows_leaves = false;                // false: they were not asked for
  std::shared_ptr<const LeaveList> leaves;  // null: none
  // Of `leaves`, those count whose rounds are from min_rounds to max_rounds, if there are any.
  bool counts_rounds = false;
  int32_t min_rounds = 0;
  int32_t max_rounds = 0;

  // The longest way out of the rule, in bytes, from where one of the tokens may lead, at most.
  int32_t max_rest = 0;

  size_t num_bytes() const { return sizeof(StateMask) + 4 * (bits.size() + tokens.size()); }
};

// The same for all loops a{m,n}t with the same a and t, where it is always clear whether a round of
// a goes on, the next begins, or t has begun: how many rounds each token takes.
struct LoopMask {
  static constexpr size_t kMaxCounted = 16;

  bool is_clear = false;  // false: nothing below holds, such loops have to be walked one by one
  std::array<std::vector<uint32_t>, kMaxCounted + 1> within;  // tokens of at most so many rounds
  std::vector<std::pair<uint16_t, int32_t>> longer;  // (rounds, token) of those with more, sorted
  std::vector<std::pair<uint16_t, int32_t>> after;   // ... of those that end in or after t
  std::shared_ptr<const LeaveList> leaves;
  int32_t max_rest_of_round = 0;
  int32_t max_rest_after = 0;

  size_t num_bytes() const {
    return sizeof(LoopMask) + 4 * within[0].size() * within.size() +
           8 * (longer.size() + after.size()) + (leaves != nullptr ? leaves->num_bytes() : 0);
  }
};

}  // namespace tgi::guide
