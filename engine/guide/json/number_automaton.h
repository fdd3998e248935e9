// Numbers that are multiples of something, as an automaton: the product of the texts of a set and
// the remainders of what was read.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/guide/grammar.h"
#include "engine/guide/json/numbers.h"

namespace tgi::guide {

class NumberAutomaton {
 public:
  static constexpr int32_t kMaxStates = 10'000;

  // Throws kInvalidArgument past kMaxStates. REQUIRES: neither every nor finite.
  NumberAutomaton(RegexPool& pool, const NumberSet& set);
  static bool is_surely_empty(RegexPool& pool, const NumberSet& set);

  Expr print(Grammar& grammar) const;  // one rule for each state

 private:
  static constexpr std::string_view kBytes = "-.0123456789";
  struct State {
    std::array<int32_t, kBytes.size()> next{};  // -1: no number begins so
    bool accepts = false;
  };
  NumberAutomaton() = default;
  // False when it stopped at the first number, or at the limit of states.
  bool explore(RegexPool& pool, const NumberSet& set, size_t limit, bool until_found);
  void drop_dead();

  std::vector<State> states_;  // the first is the start
};

bool holds(const Modulus& modulus, const Decimal& value);

}  // namespace tgi::guide
