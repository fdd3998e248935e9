// Masks. What a state of a rule allows is found once by walking the vocabulary with that state
// alone on a stack of nothing, and holds wherever the rule is called from; only tokens that go on
// after the rule's end are walked for each caller, from where the rule was left.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/guide/leave_list.h"
#include "engine/guide/machine.h"

namespace tgi::guide {
namespace {

constexpr size_t kMaxMaskBytes = size_t{32} << 20;  // of whole masks
constexpr size_t kMaxArrivalBytes = size_t{8} << 20;

}  // namespace

// Visits the nodes below `root` that can be reached from `config`, which stands at it:
// visit(node, configuration after it). Where it is known that all paths below a node can be taken,
// visit_all(node, configuration, loops) may take them at once; false: it does not, they are visited
// one by one. REQUIRES: neither walks itself.
template <typename Visit, typename VisitAll>
void Machine::walk(int32_t root, int32_t config, Visit visit, VisitAll visit_all) {
  const TokenTrie& trie = vocabulary_.trie();
  to_visit_.clear();
  find_children(root, config);
  while (!to_visit_.empty()) {
    const auto [node, here] = to_visit_.back();
    to_visit_.pop_back();
    const TokenTrie::Node& of = trie.at(node);
    if (of.end == node + 1) {
      visit(node, here, false);
      continue;
    }
    Loops* const loops = known_loops(here);
    if (loops != nullptr && loops->cover(of) && visit_all(node, here, *loops)) {
      visit(node, here, true);
      continue;
    }
    visit(node, here, false);
    find_children(node, here);
  }
}

// The children of the node that can be reached; the first of them is on top.
void Machine::find_children(int32_t node, int32_t config) {
  const TokenTrie& trie = vocabulary_.trie();
  const size_t row = row_of(config);
  const int32_t first = trie.first_child[static_cast<size_t>(node)];
  for (int32_t i = trie.first_child[static_cast<size_t>(node) + 1]; i-- > first;) {
    const auto at = static_cast<size_t>(i);
    const int32_t byte_class = pool_.class_of(trie.child_bytes[at]);
    int32_t next = rows_[row + static_cast<size_t>(byte_class)];
    if (next == kUnknown) next = make_step(config, byte_class);
    if (next == kDead) continue;
    // The nodes are far from each other: what a walk costs is to wait for them.
    prefetch(trie.at(trie.children[at]));
    to_visit_.emplace_back(trie.children[at], next);
  }
}

int32_t Machine::longest_rest(int32_t config, Loops& loops) {
  if (loops.longest_rest >= 0) return loops.longest_rest;
  int32_t rest = shortest_end(config);
  for (const int32_t inside : loops.inside) rest = std::max(rest, shortest_end(inside));
  return loops.longest_rest = rest;
}

std::shared_ptr<const StateMask> Machine::make_state_mask(int32_t state, bool with_leaves) {
  const TokenTrie& trie = vocabulary_.trie();
  entered_.insert({state, kBottom});
  const int32_t alone = finish_config();
  auto mask = std::make_shared<StateMask>();
  mask->knows_leaves = with_leaves;
  if (alone == kDead) return mask;
  std::vector<int32_t> leaves;
  std::vector<LeaveList::Range> leave_ranges;
  std::vector<TokenRange> tokens;
  const auto add_tokens = [&](int32_t begin, int32_t end) {
    if (!tokens.empty() && tokens.back().second == begin) {
      tokens.back().second = end;
    } else {
      tokens.emplace_back(begin, end);
    }
  };
  int32_t measured = kDead;  // the configuration whose end was asked for last: mostly the same
  const auto visit = [&](int32_t node, int32_t config, bool with_all_below) {
    const auto at = static_cast<size_t>(node);
    const int32_t begin = trie.nodes[at].token_begin;
    const int32_t end =
        with_all_below ? trie.tokens_below(node).second : trie.nodes[at + 1].token_begin;
    if (end > begin) {
      add_tokens(begin, end);
      if (config != measured) mask->max_rest = std::max(mask->max_rest, shortest_end(config));
      measured = config;
    }
    const bool has_children = !with_all_below && trie.nodes[at].end > node + 1;
    if (with_leaves && has_children && accepts(config)) leaves.push_back(node);
  };
  walk(0, alone, visit, [&](int32_t node, int32_t config, Loops& loops) {
    if (with_leaves && !loops.accepts_alike) return false;
    if (with_leaves && accepts(config)) leave_ranges.push_back({node + 1, trie.end_of(node), 0});
    mask->max_rest = std::max(mask->max_rest, longest_rest(config, loops));
    return true;
  });
  if (!leaves.empty() || !leave_ranges.empty())
    mask->leaves = list_leaves(trie, leaves, {}, std::move(leave_ranges));
  spread(tokens, *mask);
  return mask;
}

void Machine::set_bits(const std::vector<TokenRange>& tokens, std::vector<uint32_t>& bits) const {
  const std::vector<int32_t>& ids = vocabulary_.trie().token_ids;
  for (const auto& [begin, end] : tokens) {
    for (int32_t i = begin; i < end; ++i) set_bit(bits, ids[static_cast<size_t>(i)]);
  }
}

void Machine::spread(const std::vector<TokenRange>& tokens, StateMask& mask) const {
  const std::vector<int32_t>& ids = vocabulary_.trie().token_ids;
  const size_t num_words = (static_cast<size_t>(vocabulary_.size()) + 31) / 32;
  size_t count = 0;
  for (const auto& [begin, end] : tokens) count += static_cast<size_t>(end - begin);
  if (count <= num_words) {
    for (const auto& [begin, end] : tokens)
      mask.tokens.insert(mask.tokens.end(), ids.begin() + begin, ids.begin() + end);
    mask.tokens.shrink_to_fit();
    return;
  }
  if (count <= ids.size() / 2) {
    mask.bits.assign(num_words, 0);
    set_bits(tokens, mask.bits);
    return;
  }
  mask.bits.assign(vocabulary_.all_tokens().begin(), vocabulary_.all_tokens().end());
  size_t at = 0;
  const auto clear_to = [&](size_t end) {
    for (; at < end; ++at) {
      const auto id = static_cast<uint32_t>(ids[at]);
      mask.bits[id / 32] &= ~(uint32_t{1} << id % 32);
    }
  };
  for (const auto& [begin, end] : tokens) {
    clear_to(static_cast<size_t>(begin));
    at = static_cast<size_t>(end);
  }
  clear_to(ids.size());
}

std::shared_ptr<const StateMask> Machine::state_mask(int32_t state, bool with_leaves) {
  const auto at = static_cast<size_t>(state);
  const auto suits = [&](const std::shared_ptr<const StateMask>& mask) {
    return mask != nullptr && (mask->knows_leaves || !with_leaves);
  };
  if (suits(states_[at].mask)) return states_[at].mask;
  // Without calls, a state means the same in every grammar.
  const ExprNode node = pool_.node(states_[at].expr);
  std::shared_ptr<const StateMask> mask;
  if (!node.has_leaves) mask = vocabulary_.find_mask(node.digest);
  if (!suits(mask)) {
    // Of a counted loop only what its masks are made from is kept: there is one for each count.
    mask = node.has_leaves ? nullptr : loop_state_mask(state);
    // Nor is what belongs to the values that an answer has used up.
    const bool is_of_answer = has_items() && node.kind == ExprKind::kBoth;
    const bool is_kept = mask == nullptr && !node.has_leaves && !is_of_answer;
    if (mask == nullptr) mask = make_state_mask(state, with_leaves);
    if (is_kept) vocabulary_.keep_mask(node.digest, mask);
  }
  if (states_[at].mask == nullptr) num_mask_bytes_ += mask->num_bytes();
  return states_[at].mask = std::move(mask);
}

void Machine::add_tokens_after(int32_t stack, const StateMask& left, Mask& mask) {
  const TokenTrie& trie = vocabulary_.trie();
  const int32_t after = popped_config(stack);
  if (after == kDead) return;
  std::vector<TokenRange> tokens;
  int32_t measured = kDead;
  const auto add = [&](int32_t node, int32_t config, bool with_all_below) {
    const auto at = static_cast<size_t>(node);
    const int32_t begin = trie.nodes[at].token_begin;
    const int32_t end =
        with_all_below ? trie.tokens_below(node).second : trie.nodes[at + 1].token_begin;
    if (end == begin) return;
    if (!tokens.empty() && tokens.back().second == begin) {
      tokens.back().second = end;
    } else {
      tokens.emplace_back(begin, end);
    }
    if (config != measured) mask.max_rest = std::max(mask.max_rest, shortest_end(config));
    measured = config;
  };
  const auto add_all = [&](int32_t /*node*/, int32_t config, Loops& loops) {
    mask.max_rest = std::max(mask.max_rest, longest_rest(config, loops));
    return true;
  };
  const LeaveList& leaves = *left.leaves;
  const auto counts = [&](int32_t rounds) {
    return rounds >= left.min_rounds && rounds <= left.max_rounds;
  };
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto first = static_cast<size_t>(leaves.begin[byte]);
    const auto last = static_cast<size_t>(leaves.begin[byte + 1]);
    const bool may_be_in_range = begins_character(byte) && leaves.ranges_may_have(byte);
    if (first == last && !may_be_in_range) continue;
    const int32_t config = step(after, static_cast<uint8_t>(byte));
    if (config == kDead) continue;
    const auto go_on_at = [&](int32_t node) {
      add(node, config, false);
      walk(node, config, add, add_all);
    };
    for (size_t i = first; i < last; ++i) {
      if (leaves.rounds.empty() || counts(leaves.rounds[i])) go_on_at(leaves.nodes[i]);
    }
    if (!may_be_in_range) continue;
    const std::span<const int32_t> here = trie.nodes_of(static_cast<uint8_t>(byte));
    auto at = here.begin();
    for (const LeaveList::Range& range : leaves.ranges) {
      at = std::lower_bound(at, here.end(), range.first);
      for (; at != here.end() && *at < range.last; ++at) {
        const int32_t characters = trie.node_characters[static_cast<size_t>(*at)] - 1;
        if (!left.counts_rounds || counts(range.rounds + characters)) go_on_at(*at);
      }
    }
  }
  set_bits(tokens, mask.bits);
}

std::vector<Machine::TokenStep> Machine::token_steps(int32_t config) {
  std::vector<const TokenIds*> sets;
  for (const Item& item : items(config)) {
    const State& of = states_[static_cast<size_t>(item.state)];
    for (uint32_t i = 0; of.has_tokens && i < of.num_leads; ++i) {
      const ExprPool::Lead& lead = leads_[of.first_lead + i];
      if (!lead.is_token) continue;
      const TokenIds* const set = &token_sets_[static_cast<size_t>(lead.symbol)];
      if (std::ranges::find(sets, set) == sets.end()) sets.push_back(set);
    }
  }
  std::vector<TokenStep> steps;
  for (TokenIds& part : disjoint_parts(sets)) {
    const int32_t next = step_token(config, part.first());
    steps.push_back({std::move(part), next});
  }
  return steps;
}

const Machine::Mask& Machine::mask(int32_t config) {
  if (const auto known = masks_.find(config); known != masks_.end()) return known->second;
  Mask mask;
  mask.bits.assign((static_cast<size_t>(vocabulary_.size()) + 31) / 32, 0);
  const std::vector<Item> all(items(config).begin(), items(config).end());
  for (const Item& item : all) {
    const auto state = state_mask(item.state, item.stack != kBottom);
    for (size_t i = 0; i < state->bits.size(); ++i) mask.bits[i] |= state->bits[i];
    for (const int32_t id : state->tokens) set_bit(mask.bits, id);
    const int64_t rest = int64_t{state->max_rest} + stacks_[static_cast<size_t>(item.stack)].rest;
    mask.max_rest = std::max(mask.max_rest,
                             static_cast<int32_t>(std::min<int64_t>(rest, ExprPool::kMaxLength)));
    if (state->leaves != nullptr && item.stack != kBottom)
      add_tokens_after(item.stack, *state, mask);
  }
  for (const TokenStep& step : token_steps(config)) {
    step.tokens.add_to(mask.bits);
    mask.max_rest = std::max(mask.max_rest, shortest_end(step.config));
  }
  const size_t mask_bytes = 4 * mask.bits.size() + 64;
  if ((masks_.size() + 1) * mask_bytes > kMaxMaskBytes) masks_.clear();
  return masks_.emplace(config, std::move(mask)).first->second;
}

const std::vector<Machine::Arrival>& Machine::arrivals(int32_t config) {
  if (const auto known = arrivals_.find(config); known != arrivals_.end()) return known->second;
  const TokenTrie& trie = vocabulary_.trie();
  std::vector<Arrival> found;
  const auto add = [&](int32_t at, int32_t begin, int32_t end) {
    if (begin == end) return;
    if (!found.empty() && found.back().config == at && found.back().tokens.second == begin) {
      found.back().tokens.second = end;
    } else {
      found.push_back({at, {begin, end}});
    }
  };
  const auto visit = [&](int32_t node, int32_t next, bool with_all_below) {
    const auto at = static_cast<size_t>(node);
    const int32_t begin = trie.nodes[at].token_begin;
    add(next, begin,
        with_all_below ? trie.tokens_below(node).second : trie.nodes[at + 1].token_begin);
  };
  // Tokens that end inside of a character are farther from the end than others.
  walk(0, config, visit, [&](int32_t node, int32_t, Loops& loops) {
    return loops.leads_home && trie.at(node).leads == 0;
  });
  const size_t num_bytes = found.size() * sizeof(Arrival) + 64;
  if (num_arrival_bytes_ + num_bytes > kMaxArrivalBytes) {
    arrivals_.clear();
    num_arrival_bytes_ = 0;
  }
  num_arrival_bytes_ += num_bytes;
  return arrivals_.emplace(config, std::move(found)).first->second;
}

void Machine::mask_within(int32_t config, int64_t max_tokens, std::span<uint32_t> bits) {
  const std::vector<int32_t>& ids = vocabulary_.trie().token_ids;
  const auto is_near = [&](int32_t next) {
    return shortest_end(next) <= max_tokens || num_tokens_to_end(next) <= max_tokens;
  };
  for (const auto& [next, tokens] : arrivals(config)) {
    if (!is_near(next)) continue;
    for (int32_t i = tokens.first; i < tokens.second; ++i)
      set_bit(bits, ids[static_cast<size_t>(i)]);
  }
  for (const TokenStep& step : token_steps(config)) {
    if (is_near(step.config)) step.tokens.add_to(bits);
  }
}

}  // namespace tgi::guide
