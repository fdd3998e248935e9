// Whether a grammar gives a text, by plain search over its nodes: slow, and so simple that it can
// tell whether the automaton is right.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "engine/guide/grammar.h"

namespace tgi::guide {

// Not thread-safe; holds a reference to the grammar, which is complete.
class NaiveRecogniser {
 public:
  explicit NaiveRecogniser(Grammar& grammar) : grammar_(grammar) {}

  bool accepts(std::string_view text);

 private:
  using Ends = std::set<size_t>;  // where a part may end that begins somewhere

  const Ends& ends(int32_t node, size_t begin);
  Ends ends_of(const Grammar::Node& node, size_t begin);
  Ends ends_of_terminal(Regex terminal, size_t begin);
  Ends ends_of_repeat(const Grammar::Node& node, size_t begin);

  Grammar& grammar_;
  std::string_view text_;
  std::map<std::pair<int32_t, size_t>, Ends> known_;
  std::map<int32_t, std::optional<Dfa>> automata_;
};

}  // namespace tgi::guide
