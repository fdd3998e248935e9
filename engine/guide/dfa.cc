#include "engine/guide/dfa.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tgi::guide {
namespace {

// A complete automaton over classes of bytes; state `dead` is the one that has no way out.
struct ClassDfa {
  size_t num_classes = 0;
  std::vector<int32_t> next;  // (num_states, num_classes)
  std::vector<uint8_t> accepts;

  size_t num_states() const { return accepts.size(); }
};

ClassDfa explore(ExprPool& pool, int32_t expr) {
  ClassDfa dfa;
  dfa.num_classes = static_cast<size_t>(pool.num_classes());
  std::unordered_map<int32_t, int32_t> states;
  std::vector<int32_t> exprs;
  const auto state_of = [&](int32_t id) {
    const auto [entry, is_new] = states.try_emplace(id, static_cast<int32_t>(exprs.size()));
    if (is_new) exprs.push_back(id);
    return entry->second;
  };
  state_of(expr);
  state_of(ExprPool::kNothing);
  for (size_t at = 0; at < exprs.size(); ++at) {
    if (exprs.size() > static_cast<size_t>(pool.max_dfa_states())) {
      throw Error(Code::kInvalidArgument,
                  "the automaton of the expression is too large: more than " +
                      std::to_string(pool.max_dfa_states()) + " states");
    }
    dfa.accepts.push_back(static_cast<uint8_t>(pool.nullable(exprs[at])));
    ClassGroups groups(pool.num_classes());
    pool.tell_apart(exprs[at], groups);
    std::array<int32_t, 256> next_of{};  // by group, plus one
    for (int32_t c = 0; c < pool.num_classes(); ++c) {
      int32_t& next = next_of[groups.group_of(c)];
      if (next == 0) next = state_of(pool.derive(exprs[at], pool.representative(c))) + 1;
      dfa.next.push_back(next - 1);
    }
  }
  return dfa;
}

// Which states go to a state, by class.
class Sources {
 public:
  explicit Sources(const ClassDfa& dfa) : num_classes_(dfa.num_classes) {
    begin_.assign(dfa.num_states() * num_classes_ + 1, 0);
    for (size_t at = 0; at < dfa.next.size(); ++at) ++begin_[key(dfa.next[at], at) + 1];
    for (size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    sources_.resize(dfa.next.size());
    std::vector<size_t> fill(begin_.begin(), begin_.end() - 1);
    for (size_t at = 0; at < dfa.next.size(); ++at)
      sources_[fill[key(dfa.next[at], at)]++] = static_cast<int32_t>(at / num_classes_);
  }

  std::span<const int32_t> of(int32_t state, size_t byte_class) const {
    const size_t at = static_cast<size_t>(state) * num_classes_ + byte_class;
    return std::span(sources_).subspan(begin_[at], begin_[at + 1] - begin_[at]);
  }

 private:
  size_t key(int32_t target, size_t at) const {
    return static_cast<size_t>(target) * num_classes_ + at % num_classes_;
  }

  size_t num_classes_;
  std::vector<size_t> begin_;
  std::vector<int32_t> sources_;
};

// Blocks of states, as ranges of one array; those that are marked stand at the front of theirs.
class Partition {
 public:
  explicit Partition(size_t num_states) : block_of_(num_states, 0), place_(num_states) {
    for (size_t i = 0; i < num_states; ++i) {
      states_.push_back(static_cast<int32_t>(i));
      place_[i] = i;
    }
    blocks_.push_back({0, num_states, 0});
  }

  size_t size() const { return blocks_.size(); }
  int32_t block_of(int32_t state) const { return block_of_[static_cast<size_t>(state)]; }
  std::span<const int32_t> states(int32_t block) const {
    const Block& b = blocks_[static_cast<size_t>(block)];
    return std::span(states_).subspan(b.begin, b.end - b.begin);
  }

  void mark(int32_t state) {
    Block& block = blocks_[static_cast<size_t>(block_of(state))];
    const size_t at = place_[static_cast<size_t>(state)];
    const size_t front = block.begin + block.num_marked;
    if (at < front) return;
    if (block.num_marked++ == 0) touched_.push_back(block_of(state));
    std::swap(states_[at], states_[front]);
    place_[static_cast<size_t>(states_[at])] = at;
    place_[static_cast<size_t>(states_[front])] = front;
  }

  // Splits every block that has marked and other states; split(old, new): new is the smaller part.
  template <typename Split>
  void split_marked(Split split) {
    for (const int32_t old : touched_) {
      Block& block = blocks_[static_cast<size_t>(old)];
      const size_t middle = block.begin + std::exchange(block.num_marked, 0);
      if (middle == block.end) continue;
      Block part{block.begin, middle, 0};
      if (middle - block.begin <= block.end - middle) {
        block.begin = middle;
      } else {
        part = {middle, block.end, 0};
        block.end = middle;
      }
      const auto id = static_cast<int32_t>(blocks_.size());
      blocks_.push_back(part);
      for (const int32_t state : states(id)) block_of_[static_cast<size_t>(state)] = id;
      split(old, id);
    }
    touched_.clear();
  }

 private:
  struct Block {
    size_t begin, end, num_marked;
  };
  std::vector<int32_t> states_;
  std::vector<int32_t> block_of_;
  std::vector<size_t> place_;
  std::vector<Block> blocks_;
  std::vector<int32_t> touched_;
};

Partition minimize(const ClassDfa& dfa) {
  const Sources sources(dfa);
  Partition partition(dfa.num_states());
  std::vector<int32_t> work;
  std::vector<uint8_t> in_work{0};
  const auto split = [&](int32_t old, int32_t part) {
    // Whatever was split by the whole must be split by both parts, else by the smaller alone.
    in_work.resize(partition.size(), 0);
    const int32_t add = in_work[static_cast<size_t>(part)] != 0 ? old : part;
    if (in_work[static_cast<size_t>(add)] == 0) work.push_back(add);
    in_work[static_cast<size_t>(add)] = 1;
  };
  for (size_t i = 0; i < dfa.num_states(); ++i) {
    if (dfa.accepts[i] != 0) partition.mark(static_cast<int32_t>(i));
  }
  partition.split_marked(split);
  std::vector<int32_t> splitter;
  while (!work.empty()) {
    const int32_t block = work.back();
    work.pop_back();
    in_work[static_cast<size_t>(block)] = 0;
    const std::span<const int32_t> states = partition.states(block);
    splitter.assign(states.begin(), states.end());
    for (size_t c = 0; c < dfa.num_classes; ++c) {
      for (const int32_t state : splitter) {
        for (const int32_t source : sources.of(state, c)) partition.mark(source);
      }
      partition.split_marked(split);
    }
  }
  return partition;
}

// Which blocks lead to a state that accepts.
std::vector<uint8_t> live_blocks(const ClassDfa& dfa, const Partition& partition) {
  std::vector<std::vector<int32_t>> sources(partition.size());
  std::vector<uint8_t> live(partition.size(), 0);
  std::vector<int32_t> work;
  for (size_t block = 0; block < partition.size(); ++block) {
    const auto state = static_cast<size_t>(partition.states(static_cast<int32_t>(block))[0]);
    for (size_t c = 0; c < dfa.num_classes; ++c) {
      const int32_t next = partition.block_of(dfa.next[state * dfa.num_classes + c]);
      sources[static_cast<size_t>(next)].push_back(static_cast<int32_t>(block));
    }
    if (dfa.accepts[state] == 0) continue;
    live[block] = 1;
    work.push_back(static_cast<int32_t>(block));
  }
  while (!work.empty()) {
    const int32_t block = work.back();
    work.pop_back();
    for (const int32_t source : sources[static_cast<size_t>(block)]) {
      if (std::exchange(live[static_cast<size_t>(source)], uint8_t{1}) == 0) work.push_back(source);
    }
  }
  return live;
}

}  // namespace

Dfa minimal_dfa(ExprPool& pool, int32_t expr) {
  const ClassDfa dfa = explore(pool, expr);
  const Partition partition = minimize(dfa);
  const std::vector<uint8_t> live = live_blocks(dfa, partition);
  // Numbered in the order in which a walk from the start meets them: the same for equal languages.
  std::vector<int32_t> number(partition.size(), Dfa::kDead);
  std::vector<int32_t> order;
  const auto number_of = [&](int32_t block) {
    if (live[static_cast<size_t>(block)] == 0) return Dfa::kDead;
    int32_t& known = number[static_cast<size_t>(block)];
    if (known == Dfa::kDead) {
      known = static_cast<int32_t>(order.size());
      order.push_back(block);
    }
    return known;
  };
  Dfa result;
  if (number_of(partition.block_of(0)) == Dfa::kDead) return result;
  for (size_t at = 0; at < order.size(); ++at) {
    const auto state = static_cast<size_t>(partition.states(order[at])[0]);
    Dfa::State& made = result.states.emplace_back();
    made.accepts = dfa.accepts[state] != 0;
    for (size_t byte = 0; byte < 256; ++byte) {
      const auto c = static_cast<size_t>(pool.class_of(static_cast<uint8_t>(byte)));
      made.next[byte] = number_of(partition.block_of(dfa.next[state * dfa.num_classes + c]));
    }
  }
  return result;
}

}  // namespace tgi::guide
