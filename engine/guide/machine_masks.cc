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

}  // namespace

// Visits the nodes from `first` to `last` that can be reached from `config`, which stands at the
// parent of `first`: visit(node, configuration after it). REQUIRES: it does not walk itself.
template <typename Visit>
void Machine::walk(int32_t first, int32_t last, int32_t config, Visit visit) {
  if (first >= last) return;
  const TokenTrie& trie = vocabulary_.trie();
  const auto above = static_cast<size_t>(trie.depth[static_cast<size_t>(first)]) - 1;
  path_.resize(vocabulary_.longest_token() + 1);
  path_[above] = config;
  for (int32_t node = first; node < last;) {
    const auto at = static_cast<size_t>(node);
    const size_t depth = trie.depth[at];
    const int32_t next = step_class(path_[depth - 1], pool_.class_of(trie.byte[at]));
    if (next == kDead) {
      node = trie.end[at];
      continue;
    }
    visit(node, next);
    path_[depth] = next;
    ++node;
  }
}

std::shared_ptr<const StateMask> Machine::make_state_mask(int32_t state, bool with_leaves) {
  const TokenTrie& trie = vocabulary_.trie();
  entered_.insert({state, kBottom});
  const int32_t alone = finish_config();
  auto mask = std::make_shared<StateMask>();
  mask->knows_leaves = with_leaves;
  if (alone == kDead) return mask;
  std::vector<int32_t> leaves;
  std::vector<int32_t> tokens;
  walk(1, trie.size(), alone, [&](int32_t node, int32_t config) {
    const std::span<const int32_t> here = trie.tokens_at(node);
    if (!here.empty()) {
      tokens.insert(tokens.end(), here.begin(), here.end());
      mask->max_rest = std::max(mask->max_rest, shortest_end(config));
    }
    if (with_leaves && accepts(config) && trie.end_of(node) > node + 1) leaves.push_back(node);
  });
  if (!leaves.empty()) mask->leaves = list_leaves(trie, leaves, {});
  spread(std::move(tokens), *mask);
  return mask;
}

void Machine::spread(std::vector<int32_t> tokens, StateMask& mask) const {
  const size_t num_words = (static_cast<size_t>(vocabulary_.size()) + 31) / 32;
  if (tokens.size() > num_words) {
    mask.bits.assign(num_words, 0);
    for (const int32_t id : tokens) set_bit(mask.bits, id);
  } else {
    mask.tokens = std::move(tokens);
    mask.tokens.shrink_to_fit();
  }
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
    mask = node.has_leaves ? nullptr : loop_state_mask(state);
    if (mask == nullptr) mask = make_state_mask(state, with_leaves);
    if (!node.has_leaves) vocabulary_.keep_mask(node.digest, mask);
  }
  if (states_[at].mask == nullptr) num_mask_bytes_ += mask->num_bytes();
  return states_[at].mask = std::move(mask);
}

void Machine::add_tokens_after(int32_t stack, const StateMask& left, Mask& mask) {
  const TokenTrie& trie = vocabulary_.trie();
  const int32_t after = popped_config(stack);
  if (after == kDead) return;
  const auto add = [&](int32_t node, int32_t config) {
    const std::span<const int32_t> tokens = trie.tokens_at(node);
    if (tokens.empty()) return;
    for (const int32_t id : tokens) set_bit(mask.bits, id);
    mask.max_rest = std::max(mask.max_rest, shortest_end(config));
  };
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto first = static_cast<size_t>(left.leaves->begin[byte]);
    const auto last = static_cast<size_t>(left.leaves->begin[byte + 1]);
    if (first == last) continue;
    const int32_t config = step(after, static_cast<uint8_t>(byte));
    if (config == kDead) continue;
    for (size_t i = first; i < last; ++i) {
      if (!left.leaves->rounds.empty() &&
          (left.leaves->rounds[i] < left.min_rounds || left.leaves->rounds[i] > left.max_rounds)) {
        continue;
      }
      const int32_t node = left.leaves->nodes[i];
      add(node, config);
      walk(node + 1, trie.end_of(node), config, add);
    }
  }
}

std::vector<Machine::SpecialStep> Machine::special_steps(int32_t config) {
  std::vector<SpecialStep> steps;
  for (const Item& item : items(config)) {
    const State& of = states_[static_cast<size_t>(item.state)];
    for (uint32_t i = 0; of.has_tokens && i < of.num_leads; ++i) {
      const ExprPool::Lead& lead = leads_[of.first_lead + i];
      if (lead.is_token) steps.push_back({token_ids_[static_cast<size_t>(lead.symbol)], kDead});
    }
  }
  for (SpecialStep& special : steps) special.config = step_special(config, special.token_id);
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
  for (const SpecialStep& special : special_steps(config)) {
    set_bit(mask.bits, special.token_id);
    mask.max_rest = std::max(mask.max_rest, shortest_end(special.config));
  }
  const size_t mask_bytes = 4 * mask.bits.size() + 64;
  if ((masks_.size() + 1) * mask_bytes > kMaxMaskBytes) masks_.clear();
  return masks_.emplace(config, std::move(mask)).first->second;
}

void Machine::mask_within(int32_t config, int64_t max_tokens, std::span<uint32_t> bits) {
  const TokenTrie& trie = vocabulary_.trie();
  const auto is_near = [&](int32_t next) {
    return shortest_end(next) <= max_tokens || num_tokens_to_end(next) <= max_tokens;
  };
  std::vector<std::pair<int32_t, int32_t>> ends;
  walk(1, trie.size(), config, [&](int32_t node, int32_t next) {
    if (!trie.tokens_at(node).empty()) ends.emplace_back(node, next);
  });
  for (const auto& [node, next] : ends) {
    if (!is_near(next)) continue;
    for (const int32_t id : trie.tokens_at(node)) set_bit(bits, id);
  }
  for (const SpecialStep& special : special_steps(config)) {
    if (is_near(special.config)) set_bit(bits, special.token_id);
  }
}

}  // namespace tgi::guide
