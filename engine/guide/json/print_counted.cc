// Arrays whose items have to differ and of which some have to be, or only some may be, of a kind.
#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/guide/json/item_counts.h"
#include "engine/guide/json/schema_printer.h"

namespace tgi::guide {
namespace {

// A step from an array that can't end yet is not counted on where it has fewer values than may be
// used up: it takes longer than any other.
constexpr int32_t kFarLength = 1'000'000;

// Of the states, from which the array comes to its end in any case.
std::vector<bool> states_that_end(const ItemCounts& counts,
                                  const std::vector<std::vector<bool>>& is_step_sure) {
  std::vector<bool> ends(counts.states.size());
  for (size_t i = ends.size(); i-- > 0;) {
    const ItemCounts::State& state = counts.states[i];
    ends[i] = state.can_end;
    for (size_t s = 0; s < state.steps.size(); ++s)
      ends[i] =
          ends[i] || (is_step_sure[i][s] && state.steps[s].to != i && ends[state.steps[s].to]);
  }
  return ends;
}

}  // namespace

// One expression for each place and each number of items found so far, all of them in one rule:
// what is behind an item is known when it ends.
Expr SchemaPrinter::counted_different_items(const ArraySet& set) {
  constexpr size_t kMaxStates = 300;
  const ItemCounts counts(reader_.demands(), set, kMaxStates);
  ItemList list{grammar_.new_list(), {}, set.unique_at};
  for (const ItemCounts::State& state : counts.states) {
    for (const ItemCounts::Step& step : state.steps) list.demands.push_back(step.item);
  }
  std::ranges::sort(list.demands);
  list.demands.erase(std::unique(list.demands.begin(), list.demands.end()), list.demands.end());
  const Expr space = grammar_.terminal_in_place(json_.space_texts());
  const Expr comma = grammar_.terminal_in_place(json_.comma_texts());
  // Few rules, of which each is made anew for each set of values that are used up: what is needed
  // is rounded up where there is as much.
  std::map<std::pair<Demand, int64_t>, std::optional<Expr>> known;
  const auto item_at = [&](Demand demand, int64_t needed) {
    const auto rounded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(needed)));
    for (const int64_t count : {rounded, needed}) {
      const auto [place, is_new] = known.try_emplace({demand, count});
      if (is_new) place->second = item_of(list, demand, count);
      if (place->second) return place->second;
    }
    return std::optional<Expr>();
  };
  std::map<Demand, std::optional<Expr>> far;
  std::vector<std::vector<std::optional<Expr>>> items(counts.states.size());
  std::vector<std::vector<bool>> is_possible(counts.states.size());
  std::vector<std::vector<bool>> is_sure(counts.states.size());
  for (size_t i = 0; i < counts.states.size(); ++i) {
    const ItemCounts::State& state = counts.states[i];
    for (const ItemCounts::Step& step : state.steps) {
      const int64_t needed = state.can_end || step.to == i ? 1 : step.max_alike + 1;
      std::optional<Expr> item = item_at(step.item, needed);
      is_sure[i].push_back(item.has_value());
      if (!item) {
        const auto [place, is_new] = far.try_emplace(step.item);
        if (is_new) place->second = item_of(list, step.item, 1, kFarLength);
        item = place->second;
      }
      is_possible[i].push_back(item.has_value());
      items[i].push_back(item);
    }
  }
  const std::vector<bool> ends = states_that_end(counts, is_sure);
  const std::vector<bool> may_end = states_that_end(counts, is_possible);
  std::vector<bool> is_reached(counts.states.size());
  is_reached[0] = true;
  for (size_t i = 0; i < counts.states.size(); ++i) {
    for (size_t s = 0; is_reached[i] && s < counts.states[i].steps.size(); ++s)
      if (is_possible[i][s]) is_reached[counts.states[i].steps[s].to] = true;
  }
  std::vector<Expr> bodies(counts.states.size(), grammar_.nothing());
  for (size_t i = counts.states.size(); i-- > 0;) {
    const ItemCounts::State& state = counts.states[i];
    if (!may_end[i] || !is_reached[i]) continue;
    if (!ends[i]) {
      refuse_schema(set.unique_at,
                    "that all items differ cannot be enforced: after " +
                        std::to_string(state.place) +
                        " items the values that have to come may be used up; set minItems or "
                        "minContains lower, or list the items in an enum");
    }
    std::vector<Expr> choices;
    std::vector<Expr> loops;
    if (state.can_end) choices.push_back(grammar_.empty_text());
    for (size_t s = 0; s < state.steps.size(); ++s) {
      if (!items[i][s]) continue;
      const Expr text = grammar_.sequence({state.place == 0 ? space : comma, *items[i][s]});
      const size_t to = state.steps[s].to;
      if (to == i) {
        loops.push_back(text);
      } else if (may_end[to]) {
        choices.push_back(grammar_.sequence({text, bodies[to]}));
      }
    }
    bodies[i] = grammar_.either(choices);
    if (!loops.empty()) {
      bodies[i] =
          grammar_.sequence({grammar_.repeat(grammar_.either(loops), 0, kUnbounded), bodies[i]});
    }
  }
  const Rule rule = grammar_.declare_whole("items");
  grammar_.define(
      rule, grammar_.sequence({grammar_.text("["), bodies.front(), space, grammar_.text("]")}));
  return grammar_.call(rule);
}

}  // namespace tgi::guide
