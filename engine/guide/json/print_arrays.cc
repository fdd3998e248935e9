// Arrays as rules: items by place, counts, items that have to be there, items that differ.
#include <algorithm>
#include <optional>
#include <vector>

#include "engine/guide/json/item_counts.h"
#include "engine/guide/json/schema_printer.h"

namespace tgi::guide {
namespace {

constexpr size_t kMaxStates = 5000;

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
  const ItemCounts counts(reader_.demands(), set, kMaxStates);
  std::vector<Rule> rules;
  for (size_t i = 0; i < counts.states.size(); ++i) rules.push_back(grammar_.declare("items"));
  for (size_t i = 0; i < counts.states.size(); ++i) {
    const ItemCounts::State& state = counts.states[i];
    std::vector<Expr> choices;
    std::vector<Expr> loops;
    if (state.can_end) choices.push_back(grammar_.empty_text());
    for (const ItemCounts::Step& step : state.steps) {
      const Expr text =
          grammar_.sequence({state.place == 0 ? json_.space() : json_.comma(), value(step.item)});
      if (step.to == i) {
        loops.push_back(text);
      } else {
        choices.push_back(grammar_.sequence({text, grammar_.call(rules[step.to])}));
      }
    }
    Expr body = grammar_.either(choices);
    if (!loops.empty())
      body = grammar_.sequence({grammar_.repeat(grammar_.either(loops), 0, kUnbounded), body});
    grammar_.define(rules[i], body);
  }
  return grammar_.call(rules.front());
}

}  // namespace tgi::guide
