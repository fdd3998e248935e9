// An automaton whose edges are regular languages, made into an expression by elimination of states.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/guide/regex.h"

namespace tgi::guide {

class LabelledAutomaton {
 public:
  LabelledAutomaton(RegexPool& pool, size_t num_states);

  void add_edge(int32_t from, int32_t to, Regex label);
  void accept(int32_t state) { accepts_[static_cast<size_t>(state)] = pool_.empty_text(); }

  // The language from state 0 on. Consumes the edges. Linear in the size of what has no loops.
  // Throws kInvalidArgument when the expression is too large.
  Regex language();

 private:
  using Edges = std::map<int32_t, Regex>;

  std::vector<int32_t> components() const;  // of each state; those reached come first
  void eliminate(const std::vector<int32_t>& states);

  RegexPool& pool_;
  std::vector<Edges> edges_;
  std::vector<Regex> accepts_;  // what is left to read when a state is done with
};

}  // namespace tgi::guide
