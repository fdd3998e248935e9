#include "engine/guide/json/item_counts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "engine/guide/json/refusal.h"

namespace tgi::guide {
namespace {

constexpr size_t kMaxKinds = 4;

// From here on one place is like the next.
int64_t last_place_of(const ArraySet& set) {
  int64_t last =
      std::max<int64_t>({1, set.min_items, set.max_items, static_cast<int64_t>(set.prefix.size())});
  for (const Contains& kind : set.contains) last = std::max(last, static_cast<int64_t>(kind.from));
  return last;
}

class Counter {
 public:
  using Key = std::vector<int64_t>;  // the place, and a number for each kind

  Counter(Demands& demands, const ArraySet& set, size_t max_states)
      : demands_(demands), set_(set), last_place_(last_place_of(set)), max_states_(max_states) {}

  std::vector<ItemCounts::State> states() {
    const std::vector<Contains>& kinds = set_.contains;
    if (kinds.size() > kMaxKinds) {
      refuse_schema(kinds[kMaxKinds].at, "more than " + std::to_string(kMaxKinds) +
                                             " contains for one array cannot be enforced");
    }
    number_of(Key(1 + kinds.size(), 0));
    for (size_t done = 0; done < keys_.size(); ++done) add_state(keys_[done]);
    return in_order();
  }

 private:
  size_t number_of(const Key& key) {
    const auto [place, is_new] = numbers_.try_emplace(key, keys_.size());
    if (is_new) {
      if (keys_.size() >= max_states_)
        refuse_schema(set_.contains.front().at,
                      "the counts of the items are too large to be enforced");
      keys_.push_back(key);
    }
    return place->second;
  }

  void add_state(Key key) {
    ItemCounts::State state{key[0], Key(key.begin() + 1, key.end()), key[0] >= set_.min_items, {}};
    for (size_t k = 0; k < state.found.size(); ++k)
      state.can_end = state.can_end && state.found[k] >= set_.contains[k].min;
    const bool has_room = set_.max_items == kUnbounded || state.place < set_.max_items;
    for (uint32_t which = 0; has_room && which < (1U << state.found.size()); ++which)
      add_step(state, which);
    states_.push_back(std::move(state));
  }

  // Of an item that is of the kinds `which`.
  void add_step(ItemCounts::State& state, uint32_t which) {
    ItemCounts::Step step{set_.item(static_cast<size_t>(state.place)), 0, state.place};
    Key next{std::min(state.place + 1, last_place_)};
    const bool is_last = next[0] == state.place;
    bool is_like_kind = false;
    for (size_t k = 0; k < state.found.size(); ++k) {
      const Contains& kind = set_.contains[k];
      const bool is_found = (which >> k & 1U) != 0;
      const bool counts = static_cast<int64_t>(kind.from) <= state.place;
      const int64_t enough = kind.max == kUnbounded ? kind.min : kind.max;
      next.push_back(state.found[k] + (is_found ? 1 : 0));
      if (is_found) {
        if (!counts || state.found[k] >= enough) return;
        step.item = demands_.both(step.item, kind.item);
        const int64_t alike =
            state.found[k] + std::min(state.place, static_cast<int64_t>(kind.from));
        const bool is_fewer = is_last && !is_like_kind;
        step.max_alike = is_fewer ? alike : std::min(step.max_alike, alike);
        is_like_kind = true;
      } else if (counts && kind.max != kUnbounded) {
        step.item = demands_.both(step.item, demands_.negated(kind.item));
      }
    }
    if (step.item == kNothing) return;
    step.to = number_of(next);
    state.steps.push_back(step);
  }

  // Each step leads to a state with more items or more found ones, or to where it begins.
  std::vector<ItemCounts::State> in_order() {
    std::vector<size_t> order(keys_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto sum = [&](size_t i) {
      return std::accumulate(keys_[i].begin(), keys_[i].end(), int64_t{0});
    };
    std::ranges::stable_sort(order, {}, sum);
    std::vector<size_t> places(order.size());
    for (size_t i = 0; i < order.size(); ++i) places[order[i]] = i;
    std::vector<ItemCounts::State> sorted;
    for (const size_t i : order) {
      for (ItemCounts::Step& step : states_[i].steps) step.to = places[step.to];
      sorted.push_back(std::move(states_[i]));
    }
    return sorted;
  }

  Demands& demands_;
  const ArraySet& set_;
  const int64_t last_place_;
  const size_t max_states_;
  std::map<Key, size_t> numbers_;
  std::vector<Key> keys_;
  std::vector<ItemCounts::State> states_;  // by the numbers of keys_
};

}  // namespace

ItemCounts::ItemCounts(Demands& demands, const ArraySet& set, size_t max_states)
    : states(Counter(demands, set, max_states).states()) {}

}  // namespace tgi::guide
