// Masks of counted loops: a{m,n}t for all m and n from one walk over the vocabulary, so that a
// string of at most 100 characters does not cost a walk for each character of it.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "engine/guide/leave_list.h"
#include "engine/guide/machine.h"

namespace tgi::guide {
namespace {

// With fewer bytes to begin a round with, a walk is short anyway.
constexpr int32_t kManyBytes = 16;

}  // namespace

Machine::Loop Machine::loop_of(int32_t state) {
  const ExprNode& whole = pool_.node(states_[static_cast<size_t>(state)].expr);
  const bool has_tail = whole.kind == ExprKind::kConcat;
  const ExprNode& head = has_tail ? pool_.node(whole.a) : whole;
  if (head.kind != ExprKind::kRepeat || pool_.nullable(head.a)) return {};
  if (head.min == 0 && head.max == kUnbounded) return {};  // once is enough
  return {head.a, has_tail ? whole.b : ExprPool::kEmpty, head.min, head.max};
}

std::shared_ptr<const LoopMask> Machine::loop_mask(const Loop& loop) {
  int32_t num_first = 0;
  for (int32_t c = 0; c < num_classes_; ++c) {
    const bool begins = pool_.derive(loop.body, pool_.representative(c)) != ExprPool::kNothing;
    if (begins) num_first += class_sizes_[static_cast<size_t>(c)];
  }
  if (num_first < kManyBytes) return nullptr;
  // (x{1,9})* is x*, which has other rounds.
  const int32_t rounds = pool_.repeat(loop.body, 0, kUnbounded);
  if (pool_.node(rounds).kind != ExprKind::kRepeat || pool_.node(rounds).a != loop.body)
    return nullptr;
  const int32_t endless = pool_.concat(rounds, loop.after);
  const auto digest = pool_.node(endless).digest;
  std::shared_ptr<const LoopMask> mask = vocabulary_.find_loop(digest);
  if (mask == nullptr) {
    mask = make_loop_mask(loop, endless);
    vocabulary_.keep_loop(digest, mask);
  }
  return mask->is_clear ? mask : nullptr;
}

std::shared_ptr<const LoopMask> Machine::make_loop_mask(const Loop& loop, int32_t endless) {
  const TokenTrie& trie = vocabulary_.trie();
  const auto result = std::make_shared<LoopMask>();
  const auto expr_of = [&](int32_t state) { return states_[static_cast<size_t>(state)].expr; };
  // A round is on: what is left of it can't be empty, then comes the loop again.
  const auto is_inside = [&](int32_t expr) {
    while (expr != endless && pool_.node(expr).kind == ExprKind::kConcat &&
           !pool_.nullable(pool_.node(expr).a)) {
      expr = pool_.node(expr).b;
    }
    return expr == endless;
  };
  // What a state reached inside the loop is, found once for each.
  enum class Place : uint8_t { kUnknown, kBetween, kInside, kElse };
  std::vector<Place> places;
  const auto place_of = [&](int32_t state) {
    const auto at = static_cast<size_t>(state);
    if (at >= places.size()) places.resize(at + 64, Place::kUnknown);
    if (places[at] != Place::kUnknown) return places[at];
    const int32_t expr = expr_of(state);
    if (expr == endless) return places[at] = Place::kBetween;
    if (!is_inside(expr)) return places[at] = Place::kElse;
    result->max_rest_of_round =
        std::max(result->max_rest_of_round, pool_.shortest(expr) - pool_.shortest(endless));
    return places[at] = Place::kInside;
  };
  std::array<bool, 256> begins_round;
  for (size_t byte = 0; byte < 256; ++byte)
    begins_round[byte] = pool_.derive(loop.body, static_cast<uint8_t>(byte)) != ExprPool::kNothing;
  struct Step {
    int32_t state = 0;
    uint16_t rounds = 0;
    bool inside = false;  // of a round
    bool after = false;   // in or after what follows the loop
  };
  const Step start{state_of(endless), 0, false, false};
  struct Reached {
    int32_t node = 0;
    int32_t state = 0;  // after it
    Step from;
  };
  std::vector<Reached> to_visit;
  const auto find_children = [&](int32_t node, const Step& from) {
    const int32_t first = trie.first_child[static_cast<size_t>(node)];
    for (int32_t i = trie.first_child[static_cast<size_t>(node) + 1]; i-- > first;) {
      const auto at = static_cast<size_t>(i);
      const int32_t next = next_state(from.state, pool_.class_of(trie.child_bytes[at]));
      if (next == kDead) continue;
      prefetch(trie.at(trie.children[at]));
      to_visit.push_back({trie.children[at], next, from});
    }
  };
  const size_t num_words = (static_cast<size_t>(vocabulary_.size()) + 31) / 32;
  for (std::vector<uint32_t>& bits : result->within) bits.assign(num_words, 0);
  std::vector<int32_t> leaves;
  std::vector<uint16_t> leave_rounds;
  // Where each character is a round, tokens that are made of them need not be walked byte by byte.
  const Loops loops = loops_of_round(
      start.state, [&](int32_t inside) { return place_of(inside) == Place::kInside; });
  std::vector<LeaveList::Range> leave_ranges;
  const auto take_all_below = [&](int32_t node, const Step& step) {
    const int32_t before = step.rounds - trie.node_characters[static_cast<size_t>(node)];
    if (states_[static_cast<size_t>(step.state)].accepts)
      leave_ranges.push_back({node + 1, trie.end_of(node), before});
    const auto [begin, end] = trie.tokens_below(node);
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const auto needed = static_cast<uint16_t>(before + trie.token_characters[i]);
      if (needed <= LoopMask::kMaxCounted) {
        set_bit(result->within[needed], trie.token_ids[i]);
      } else {
        result->longer.emplace_back(needed, trie.token_ids[i]);
      }
    }
  };
  find_children(0, start);
  while (!to_visit.empty()) {
    const auto [node, next, from] = to_visit.back();
    to_visit.pop_back();
    const auto at = static_cast<size_t>(node);
    Step step{next, from.rounds, false, from.after};
    if (!from.after) {
      const Place place = place_of(next);
      if (place == Place::kBetween) {
        ++step.rounds;
      } else if (place == Place::kInside) {
        step.inside = true;
      } else if (!from.inside && !begins_round[trie.nodes[at].byte]) {
        step.after = true;
      } else {
        return result;
      }
    }
    const auto needed = static_cast<uint16_t>(step.rounds + static_cast<uint16_t>(step.inside));
    for (const int32_t id : trie.tokens_at(node)) {
      if (step.after) {
        result->after.emplace_back(needed, id);
        result->max_rest_after = std::max(result->max_rest_after, pool_.shortest(expr_of(next)));
      } else if (needed <= LoopMask::kMaxCounted) {
        set_bit(result->within[needed], id);
      } else {
        result->longer.emplace_back(needed, id);
      }
    }
    if (trie.nodes[at].end == node + 1) continue;
    if (!step.after && next == start.state && loops.cover(trie.nodes[at])) {
      take_all_below(node, step);
      continue;
    }
    const bool may_leave = !step.inside && states_[static_cast<size_t>(next)].accepts;
    if (may_leave) {
      leaves.push_back(node);
      leave_rounds.push_back(step.rounds);
    }
    find_children(node, step);
  }
  std::ranges::sort(result->longer);
  for (size_t rounds = 1; rounds < result->within.size(); ++rounds) {
    for (size_t word = 0; word < num_words; ++word)
      result->within[rounds][word] |= result->within[rounds - 1][word];
  }
  if (!leaves.empty() || !leave_ranges.empty())
    result->leaves = list_leaves(trie, leaves, leave_rounds, std::move(leave_ranges));
  result->is_clear = true;
  return result;
}

std::shared_ptr<const StateMask> Machine::loop_state_mask(int32_t state) {
  const Loop loop = loop_of(state);
  if (loop.body < 0) return nullptr;
  const std::shared_ptr<const LoopMask> counted = loop_mask(loop);
  if (counted == nullptr) return nullptr;
  const int32_t max = loop.max == kUnbounded ? std::numeric_limits<int32_t>::max() : loop.max;
  auto mask = std::make_shared<StateMask>();
  mask->knows_leaves = true;
  mask->leaves = counted->leaves;
  mask->counts_rounds = true;
  mask->min_rounds = loop.min;
  mask->max_rounds = max;
  mask->bits = counted->within[std::min<size_t>(static_cast<size_t>(max), LoopMask::kMaxCounted)];
  for (const auto& [rounds, id] : counted->longer) {
    if (rounds > max) break;
    set_bit(mask->bits, id);
  }
  for (const auto& [rounds, id] : counted->after) {
    if (rounds >= loop.min && rounds <= max) set_bit(mask->bits, id);
  }
  const int32_t whole = pool_.shortest(states_[static_cast<size_t>(state)].expr);
  mask->max_rest = std::max(whole + counted->max_rest_of_round, counted->max_rest_after);
  return mask;
}

}  // namespace tgi::guide
