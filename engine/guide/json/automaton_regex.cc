#include "engine/guide/json/automaton_regex.h"

#include <algorithm>
#include <set>

namespace tgi::guide {

LabelledAutomaton::LabelledAutomaton(RegexPool& pool, size_t num_states)
    : pool_(pool), edges_(num_states), accepts_(num_states, pool.nothing()) {}

void LabelledAutomaton::add_edge(int32_t from, int32_t to, Regex label) {
  Edges& edges = edges_[static_cast<size_t>(from)];
  const auto [place, is_new] = edges.emplace(to, label);
  if (!is_new) place->second = pool_.either({place->second, label});
}

// Tarjan's strongly connected components, without recursion: their numbers rise from the leaves.
std::vector<int32_t> LabelledAutomaton::components() const {
  const size_t size = edges_.size();
  std::vector<int32_t> component(size, -1);
  std::vector<int32_t> index(size, -1);
  std::vector<int32_t> low(size, 0);
  std::vector<int32_t> path;
  struct Frame {
    int32_t state;
    Edges::const_iterator next;
  };
  std::vector<Frame> frames;
  int32_t num_indices = 0;
  int32_t num_components = 0;
  const auto enter = [&](int32_t state) {
    index[static_cast<size_t>(state)] = low[static_cast<size_t>(state)] = num_indices++;
    path.push_back(state);
    frames.push_back({state, edges_[static_cast<size_t>(state)].begin()});
  };
  if (size > 0) enter(0);
  while (!frames.empty()) {
    Frame& frame = frames.back();
    const auto state = static_cast<size_t>(frame.state);
    if (frame.next != edges_[state].end()) {
      const auto to = static_cast<size_t>((frame.next++)->first);
      if (index[to] < 0) {
        enter(static_cast<int32_t>(to));
      } else if (component[to] < 0) {
        low[state] = std::min(low[state], index[to]);
      }
      continue;
    }
    if (low[state] == index[state]) {
      while (component[state] < 0) {
        component[static_cast<size_t>(path.back())] = num_components;
        path.pop_back();
      }
      ++num_components;
    }
    frames.pop_back();
    if (!frames.empty()) {
      const auto before = static_cast<size_t>(frames.back().state);
      low[before] = std::min(low[before], low[state]);
    }
  }
  return component;
}

// Solves the states of one component, whose edges lead only to each other: the cheapest first, so
// that a loop over characters of several bytes stays small.
void LabelledAutomaton::eliminate(const std::vector<int32_t>& states) {
  std::map<int32_t, std::set<int32_t>> into;
  for (const int32_t state : states) into[state];
  for (const int32_t state : states) {
    for (const auto& [to, label] : edges_[static_cast<size_t>(state)]) into[to].insert(state);
  }
  std::vector<int32_t> order;
  std::set<int32_t> left(states.begin(), states.end());
  while (!left.empty()) {
    const auto cost = [&](int32_t state) {
      return into[state].size() * edges_[static_cast<size_t>(state)].size();
    };
    const int32_t state = *std::min_element(
        left.begin(), left.end(), [&](int32_t a, int32_t b) { return cost(a) < cost(b); });
    left.erase(state);
    order.push_back(state);
    Edges& edges = edges_[static_cast<size_t>(state)];
    if (const auto self = edges.find(state); self != edges.end()) {
      const Regex loop = pool_.repeat(self->second, 0, kUnbounded);
      edges.erase(self);
      into[state].erase(state);
      for (auto& [to, label] : edges) label = pool_.concat({loop, label});
      Regex& rest = accepts_[static_cast<size_t>(state)];
      rest = pool_.concat({loop, rest});
    }
    for (const auto& [to, label] : edges) into[to].erase(state);
    for (const int32_t from : into[state]) {
      const Regex before = edges_[static_cast<size_t>(from)].at(state);
      edges_[static_cast<size_t>(from)].erase(state);
      for (const auto& [to, label] : edges) {
        add_edge(from, to, pool_.concat({before, label}));
        into[to].insert(from);
      }
      Regex& rest = accepts_[static_cast<size_t>(from)];
      rest = pool_.either({rest, pool_.concat({before, accepts_[static_cast<size_t>(state)]})});
    }
  }
  // The last one is solved; the others refer to those that went after them.
  for (auto state = order.rbegin(); state != order.rend(); ++state) {
    Regex& rest = accepts_[static_cast<size_t>(*state)];
    std::vector<Regex> choices = {rest};
    for (const auto& [to, label] : edges_[static_cast<size_t>(*state)]) {
      choices.push_back(pool_.concat({label, accepts_[static_cast<size_t>(to)]}));
    }
    rest = pool_.either(choices);
  }
}

Regex LabelledAutomaton::language() {
  if (edges_.empty()) return pool_.nothing();
  const std::vector<int32_t> component = components();
  std::vector<std::vector<int32_t>> members;
  for (size_t i = 0; i < component.size(); ++i) {
    if (component[i] < 0) continue;  // never reached
    const auto number = static_cast<size_t>(component[i]);
    if (members.size() <= number) members.resize(number + 1);
    members[number].push_back(static_cast<int32_t>(i));
  }
  for (const std::vector<int32_t>& states : members) {
    for (const int32_t state : states) {
      // What leaves the component is solved already, and becomes a part of what is left to read.
      Edges inside;
      std::vector<Regex> choices = {accepts_[static_cast<size_t>(state)]};
      for (const auto& [to, label] : edges_[static_cast<size_t>(state)]) {
        if (component[static_cast<size_t>(to)] == component[static_cast<size_t>(state)]) {
          inside.emplace(to, label);
        } else {
          choices.push_back(pool_.concat({label, accepts_[static_cast<size_t>(to)]}));
        }
      }
      edges_[static_cast<size_t>(state)] = inside;
      accepts_[static_cast<size_t>(state)] = pool_.either(choices);
    }
    eliminate(states);
  }
  return accepts_[0];
}

}  // namespace tgi::guide
