// An array whose items are counted, as states: a place, and how many items of each `contains` were
// found so far. Printed as rules, as an expression in which items differ, or as a regular one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/guide/json/demands.h"
#include "engine/guide/json/value_sets.h"

namespace tgi::guide {

struct ItemCounts {
  struct Step {
    Demand item;
    size_t to = 0;  // a state behind this one, or this one
    // Of the items that this one has to differ from, so many at most are of its kind, or else the
    // array could have been read in a way that needs fewer of them.
    int64_t max_alike = 0;
  };
  struct State {
    int64_t place = 0;  // the last one stands for all behind it
    std::vector<int64_t> found;
    bool can_end = false;
    std::vector<Step> steps;
  };
  std::vector<State> states;  // the first is where the array begins

  // Throws where they are more than `max_states`.
  ItemCounts(Demands& demands, const ArraySet& set, size_t max_states);
};

}  // namespace tgi::guide
