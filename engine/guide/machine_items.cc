// Items that have to differ. What may come after an item is an expression with calls of the rules
// of further items; once it is known which value the item has, these are replaced by calls of the
// same items without that value. So the configuration says which values are used up, and all that
// is found of it (masks, ends, what is left when values run out) is right without more.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "engine/guide/different_items.h"
#include "engine/guide/machine.h"

namespace tgi::guide {

int32_t Machine::used_with(int32_t used, int32_t value) {
  Used more = used_[static_cast<size_t>(used)];
  const auto place = std::ranges::lower_bound(more.values, value);
  if (place != more.values.end() && *place == value) return used;
  more.values.insert(place, value);
  std::vector<int32_t> key = more.values;
  key.push_back(more.list);
  const auto [known, is_new] =
      used_ids_.try_emplace(std::move(key), static_cast<int32_t>(used_.size()));
  if (is_new) {
    num_item_bytes_ += 2 * sizeof(int32_t) * more.values.size() + 128;
    used_.push_back(std::move(more));
  }
  return known->second;
}

// The call of an item without the values; kNothing: there are no others.
int32_t Machine::item_rule(int32_t rule, int32_t used) {
  const ItemRule of = item_rules_[static_cast<size_t>(rule)];
  const auto [known, is_new] = item_rule_ids_.try_emplace(std::pair{of.first, used}, -1);
  if (is_new) {
    std::vector<std::string> values;
    for (const int32_t value : used_[static_cast<size_t>(used)].values)
      values.push_back(values_[static_cast<size_t>(value)]);
    const int32_t others =
        pool_.both(std::array{rule_bodies_[static_cast<size_t>(of.first)],
                              pool_.complement(texts_of_json_values(pool_, values))});
    known->second = ExprPool::kNothing;
    if (pool_.alive(others) == ExprPool::Alive::kYes) {
      const auto id = static_cast<int32_t>(rule_bodies_.size());
      rule_bodies_.push_back(others);
      item_rules_.push_back({used, of.first, of.length});
      // Where more are used up than there may be when one is needed, the next may be longer.
      known->second = pool_.call(id, false, std::max(of.length, pool_.shortest(others)));
    }
  }
  return known->second;
}

int32_t Machine::settled_rest(int32_t rest, int32_t used, int32_t value) {
  const int32_t more = used_with(used, value);
  return pool_.with_leaves(rest, [&](const ExprNode& leaf) -> int32_t {
    if (leaf.kind == ExprKind::kItemEnd && leaf.a == used) return pool_.item_end(more);
    const bool is_item =
        leaf.kind == ExprKind::kCall && item_rules_[static_cast<size_t>(leaf.a)].used == used;
    return is_item ? item_rule(leaf.a, more) : -1;
  });
}

int32_t Machine::settle(int32_t config, std::string_view text) {
  const auto [place, is_new] = value_ids_.try_emplace(canonical_json_value(last_json_value(text)),
                                                      static_cast<int32_t>(values_.size()));
  if (is_new) {
    values_.push_back(place->first);
    num_item_bytes_ += 2 * place->first.size() + 128;
  }
  const int32_t value = place->second;
  const auto known = settled_.find({config, value});
  if (known != settled_.end()) return known->second;
  const std::vector<Item> all(items(config).begin(), items(config).end());
  for (const Item& item : all) {
    const State& of = states_[static_cast<size_t>(item.state)];
    if (of.ends_item) continue;
    entered_.insert(item);  // where it leads without a byte is among the others already
  }
  for (const Item& item : all) {
    const State& of = states_[static_cast<size_t>(item.state)];
    if (!of.ends_item) continue;
    const int32_t expr = of.expr;
    std::vector<int32_t> ends{expr};
    if (pool_.node(expr).kind == ExprKind::kEither)
      ends.assign(pool_.parts(pool_.node(expr)).begin(), pool_.parts(pool_.node(expr)).end());
    for (int32_t& end : ends) {
      const std::vector<int32_t> rests = pool_.after_item_ends(end);
      if (rests.empty()) continue;
      end = settled_rest(rests.front(), pool_.node(pool_.node(end).a).a, value);
    }
    const int32_t next = pool_.live_part(pool_.either(ends));
    if (pool_.alive(next) == ExprPool::Alive::kYes) enter(state_of(next), item.stack);
  }
  made_accepts_ |= accepts(config);
  const int32_t result = finish_config();
  settled_.emplace(std::pair{config, value}, result);
  return result;
}

int32_t Machine::settled_step(int32_t config, std::string_view bytes, std::string& text) {
  for (const char byte : bytes) {
    if (config == kDead) break;
    config = step(config, static_cast<uint8_t>(byte));
    text.push_back(byte);
    if (config != kDead && ends_item(config)) config = settle(config, text);
  }
  return config;
}

const std::vector<Machine::Crossing>& Machine::crossings(int32_t config) {
  if (const auto known = crossings_.find(config); known != crossings_.end()) return known->second;
  const TokenTrie& trie = vocabulary_.trie();
  if (comma_tokens_.empty()) {
    int32_t done = 0;  // in token_ids
    for (const int32_t node : trie.nodes_of(',')) {
      const int32_t first = std::max(done, trie.at(node).token_begin);
      done = std::max(done, trie.tokens_below(node).second);
      for (int32_t i = first; i < done; ++i)
        comma_tokens_.push_back(trie.token_ids[static_cast<size_t>(i)]);
    }
  }
  const auto is_between = [](char c) { return c == ',' || c == ' ' || (c >= '\t' && c <= '\r'); };
  std::vector<Crossing> found;
  const std::vector<uint32_t>& bits = mask(config).bits;
  for (const int32_t token : comma_tokens_) {
    if ((bits[static_cast<size_t>(token) / 32] >> (static_cast<uint32_t>(token) % 32) & 1) == 0)
      continue;
    const std::string_view bytes = vocabulary_.bytes(token);
    int32_t at = config;
    for (size_t i = 0; i < bytes.size() && at != kDead; ++i) {
      size_t next = i;
      while (next < bytes.size() && is_between(bytes[next])) ++next;
      // A name, with its value behind it and perhaps the next name.
      const bool is_name = next < bytes.size() && bytes[next] == ':';
      if (i > 0 && is_name && ends_item(at) && bytes.find(',', next) != std::string_view::npos) {
        found.push_back({token, static_cast<int32_t>(i), static_cast<int32_t>(next)});
        break;
      }
      if (i > 0 && next > i && ends_item(at) &&
          std::ranges::find(bytes.substr(i, next - i), ',') != bytes.begin() + next) {
        found.push_back({token, static_cast<int32_t>(i), static_cast<int32_t>(next)});
        break;
      }
      at = step(at, static_cast<uint8_t>(bytes[i]));
    }
  }
  num_item_bytes_ += sizeof(Crossing) * found.size() + 64;
  return crossings_.emplace(config, std::move(found)).first->second;
}

// Whether the next item, of which `next` is the beginning, may be the value of the item before it.
static bool is_written_alike(std::string_view value, std::string_view next) {
  if (value.find('\\') != std::string_view::npos) return true;  // may be written in other ways
  const size_t end = next.find('"', 1);
  if (end == std::string_view::npos) return value.starts_with(next);
  return next.find(',', end) != std::string_view::npos || next.substr(0, end + 1) == value;
}

// The next item of such a token is one that may come, but for the value of the item before it.
bool Machine::may_matter(const Crossing& crossing, std::string& text) const {
  const std::string_view bytes = vocabulary_.bytes(crossing.token);
  const std::string_view next = bytes.substr(static_cast<size_t>(crossing.next));
  if (next.empty() || next == "\"") return has_scarce_items_;
  if (next[0] != '"' || next.find('\\') != std::string_view::npos) return true;
  const size_t size = text.size();
  text += bytes.substr(0, static_cast<size_t>(crossing.end));
  const bool may = is_written_alike(last_json_value(text), next);
  text.resize(size);
  return may;
}

}  // namespace tgi::guide
