// Arrays as rules: items by place, counts, items that have to be there, items that differ.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/guide/json/schema_printer.h"

namespace tgi::guide {
namespace {

constexpr int64_t kMaxStates = 5000;

}  // namespace

Expr SchemaPrinter::array(const ArraySet& set) {
  const bool may_repeat =
      set.unique_at.empty() || (set.max_items != kUnbounded && set.max_items <= 1);
  if (!may_repeat && !are_places_different(reader_, set)) return different_items(set);
  if (!set.contains.empty()) return json_.in_brackets(counted_items(set));
  return json_.in_brackets(plain_items(set));
}

Expr SchemaPrinter::plain_items(const ArraySet& set) {
  constexpr size_t kNesting = 32;
  size_t num_places = set.prefix.size();
  if (set.max_items != kUnbounded) {
    num_places = std::min(num_places, static_cast<size_t>(set.max_items));
  }
  const auto places = static_cast<int64_t>(num_places);
  const int64_t most = set.max_items == kUnbounded ? kUnbounded : set.max_items - places;
  const int64_t least = std::max<int64_t>(set.min_items - places, 0);
  Expr tail = grammar_.empty_text();
  if (most != 0 && set.rest != kNothing) {
    const Expr item = value(set.rest);
    const Expr next = grammar_.sequence({json_.comma(), item});
    if (places > 0) {
      tail = repeat_in_blocks(grammar_, next, least, most);
    } else {
      const Expr more = repeat_in_blocks(grammar_, next, std::max<int64_t>(least - 1, 0),
                                         most == kUnbounded ? kUnbounded : most - 1);
      tail = grammar_.sequence({json_.space(), item, more});
      if (least == 0) tail = grammar_.optional(tail);
    }
  } else if (least > 0) {
    return grammar_.nothing();
  }
  // From the last place to the first: each may be the end from min_items on.
  std::vector<Expr> parts = {tail};
  for (size_t i = num_places; i-- > 0;) {
    parts.insert(parts.begin(), {i == 0 ? json_.space() : json_.comma(), value(set.prefix[i])});
    if (static_cast<int64_t>(i) < set.min_items) continue;
    Expr rest = grammar_.optional(grammar_.sequence(parts));
    if (i % kNesting == kNesting - 1) {
      const Rule rule = grammar_.declare("items");
      grammar_.define(rule, rest);
      rest = grammar_.call(rule);
    }
    parts = {rest};
  }
  return grammar_.sequence(parts);
}

// One rule for each place and each number of items found so far.
Expr SchemaPrinter::counted_items(const ArraySet& set) {
  constexpr size_t kMaxKinds = 4;
  const std::vector<Contains>& kinds = set.contains;
  if (kinds.size() > kMaxKinds) {
    refuse_schema(kinds[kMaxKinds].at, "more than " + std::to_string(kMaxKinds) +
                                           " contains for one array cannot be enforced");
  }
  // From here on one place is like the next.
  auto last_place =
      std::max<int64_t>({1, set.min_items, set.max_items, static_cast<int64_t>(set.prefix.size())});
  for (const Contains& kind : kinds) {
    last_place = std::max(last_place, static_cast<int64_t>(kind.from));
  }
  using State = std::vector<int64_t>;  // the place, and a number for each kind
  std::map<State, Rule> rules;
  std::vector<State> open;
  const auto rule_of = [&](const State& state) {
    const auto [place, is_new] = rules.emplace(state, Rule{});
    if (is_new) {
      if (rules.size() > static_cast<size_t>(kMaxStates)) {
        refuse_schema(kinds.front().at, "the counts of the items are too large to be enforced");
      }
      place->second = grammar_.declare("items");
      open.push_back(state);
    }
    return place->second;
  };
  const Rule first = rule_of(State(1 + kinds.size(), 0));
  while (!open.empty()) {
    const State state = open.back();
    open.pop_back();
    const int64_t place = state[0];
    bool can_end = place >= set.min_items;
    for (size_t k = 0; k < kinds.size(); ++k) can_end = can_end && state[k + 1] >= kinds[k].min;
    std::vector<Expr> choices;
    std::vector<Expr> loops;
    if (can_end) choices.push_back(grammar_.empty_text());
    const bool has_room = set.max_items == kUnbounded || place < set.max_items;
    for (uint32_t found = 0; has_room && found < (1U << kinds.size()); ++found) {
      Demand item = set.item(static_cast<size_t>(place));
      State next = state;
      next[0] = std::min(place + 1, last_place);
      bool is_possible = true;
      for (size_t k = 0; k < kinds.size(); ++k) {
        const Contains& kind = kinds[k];
        const bool is_found = (found >> k & 1U) != 0;
        const bool counts = static_cast<int64_t>(kind.from) <= place;
        const int64_t enough = kind.max == kUnbounded ? kind.min : kind.max;
        if (is_found) {
          is_possible = is_possible && counts && state[k + 1] < enough;
          item = reader_.demands().both(item, kind.item);
          ++next[k + 1];
        } else if (counts && kind.max != kUnbounded) {
          item = reader_.demands().both(item, reader_.demands().negated(kind.item));
        }
      }
      if (!is_possible || item == kNothing) continue;
      const Expr text =
          grammar_.sequence({place == 0 ? json_.space() : json_.comma(), value(item)});
      if (next == state) {
        loops.push_back(text);
      } else {
        choices.push_back(grammar_.sequence({text, grammar_.call(rule_of(next))}));
      }
    }
    Expr body = grammar_.either(choices);
    if (!loops.empty()) {
      body = grammar_.sequence({grammar_.repeat(grammar_.either(loops), 0, kUnbounded), body});
    }
    grammar_.define(rules.at(state), body);
  }
  return grammar_.call(first);
}

}  // namespace tgi::guide
