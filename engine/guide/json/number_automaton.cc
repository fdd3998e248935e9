#include "engine/guide/json/number_automaton.h"

#include <map>
#include <string>

#include "base/error.h"

namespace tgi::guide {
namespace {

// How far one remainder has come.
struct Remainder {
  static constexpr int32_t kNever = -1;  // a digit behind the last decimal was not zero

  int32_t value = 0;
  int32_t decimals = -1;  // read so far, at most those of the modulus; -1: no point yet

  void read(const Modulus& modulus, char byte) {
    if (byte == '-' || value == kNever) return;
    if (byte == '.') {
      decimals = 0;
    } else if (decimals < modulus.decimals) {
      value = static_cast<int32_t>((int64_t{value} * 10 + (byte - '0')) % modulus.divisor);
      if (decimals >= 0) ++decimals;
    } else if (byte != '0') {
      value = kNever;
    }
  }

  bool accepted(const Modulus& modulus) const {
    if (value == kNever) return modulus.negated;
    int64_t scaled = value;
    for (int32_t i = decimals < 0 ? 0 : decimals; i < modulus.decimals; ++i) {
      scaled = scaled * 10 % modulus.divisor;
    }
    return (scaled == 0) != modulus.negated;
  }
};

}  // namespace

bool holds(const Modulus& modulus, const Decimal& value) {
  Remainder remainder;
  for (const char c : value.text()) {
    // Without decimals the point is where digits begin that have to be zero.
    remainder.read(modulus, c);
  }
  return remainder.accepted(modulus);
}

NumberAutomaton::NumberAutomaton(RegexPool& pool, const NumberSet& set) {
  if (!explore(pool, set, kMaxStates, false)) {
    throw Error(Code::kInvalidArgument, "multipleOf comes to more than " +
                                            std::to_string(kMaxStates) +
                                            " remainders and digits to tell apart");
  }
  drop_dead();
}

bool NumberAutomaton::is_surely_empty(RegexPool& pool, const NumberSet& set) {
  constexpr size_t kMaxLooked = 2000;
  return NumberAutomaton().explore(pool, set, kMaxLooked, true);
}

bool NumberAutomaton::explore(RegexPool& pool,
                              const NumberSet& set,
                              size_t limit,
                              bool until_found) {
  const Dfa texts = pool.dfa(set.texts);
  if (texts.states.empty()) return true;
  using Key = std::vector<int32_t>;  // a state of the texts, and two numbers for each modulus
  std::map<Key, int32_t> known;
  std::vector<const Key*> keys;
  const auto state_of = [&](const Key& key) {
    const auto [place, is_new] = known.emplace(key, static_cast<int32_t>(states_.size()));
    if (is_new) {
      if (states_.size() >= limit) return -1;
      states_.emplace_back();
      keys.push_back(&place->first);
    }
    return place->second;
  };
  Key start{0};
  for (size_t i = 0; i < set.moduli.size(); ++i) start.insert(start.end(), {0, -1});
  state_of(start);
  for (size_t at = 0; at < states_.size(); ++at) {
    const Key key = *keys[at];
    std::vector<Remainder> remainders;
    for (size_t i = 0; i < set.moduli.size(); ++i) {
      remainders.push_back({key[1 + 2 * i], key[2 + 2 * i]});
    }
    bool accepts = texts.states[static_cast<size_t>(key[0])].accepts;
    for (size_t i = 0; i < remainders.size(); ++i) {
      accepts = accepts && remainders[i].accepted(set.moduli[i]);
    }
    states_[at].accepts = accepts;
    if (accepts && until_found) return false;
    for (size_t b = 0; b < kBytes.size(); ++b) {
      const auto byte = static_cast<unsigned char>(kBytes[b]);
      const int32_t next = texts.states[static_cast<size_t>(key[0])].next[byte];
      states_[at].next[b] = -1;
      if (next == Dfa::kDead) continue;
      Key next_key{next};
      for (size_t i = 0; i < remainders.size(); ++i) {
        Remainder remainder = remainders[i];
        remainder.read(set.moduli[i], kBytes[b]);
        next_key.insert(next_key.end(), {remainder.value, remainder.decimals});
      }
      const int32_t state = state_of(next_key);
      if (state < 0) return false;
      states_[at].next[b] = state;
    }
  }
  return true;
}

void NumberAutomaton::drop_dead() {
  std::vector<std::vector<int32_t>> before(states_.size());
  std::vector<int32_t> alive;
  std::vector<bool> lives(states_.size());
  for (size_t i = 0; i < states_.size(); ++i) {
    for (const int32_t next : states_[i].next) {
      if (next >= 0) before[static_cast<size_t>(next)].push_back(static_cast<int32_t>(i));
    }
    if (states_[i].accepts) {
      lives[i] = true;
      alive.push_back(static_cast<int32_t>(i));
    }
  }
  while (!alive.empty()) {
    const auto state = static_cast<size_t>(alive.back());
    alive.pop_back();
    for (const int32_t from : before[state]) {
      if (lives[static_cast<size_t>(from)]) continue;
      lives[static_cast<size_t>(from)] = true;
      alive.push_back(from);
    }
  }
  if (!lives.empty() && !lives[0]) states_.clear();
  for (State& state : states_) {
    for (int32_t& next : state.next) {
      if (next >= 0 && !lives[static_cast<size_t>(next)]) next = -1;
    }
  }
}

Expr NumberAutomaton::print(Grammar& grammar) const {
  if (states_.empty()) return grammar.nothing();
  std::vector<Rule> rules;
  rules.reserve(states_.size());
  for (size_t i = 0; i < states_.size(); ++i) rules.push_back(grammar.declare("multiple"));
  for (size_t i = 0; i < states_.size(); ++i) {
    std::map<int32_t, ByteSet> edges;
    for (size_t b = 0; b < kBytes.size(); ++b) {
      const int32_t next = states_[i].next[b];
      if (next >= 0) edges[next].set(static_cast<unsigned char>(kBytes[b]));
    }
    std::vector<Expr> choices;
    if (states_[i].accepts) choices.push_back(grammar.empty_text());
    for (const auto& [next, bytes] : edges) {
      choices.push_back(grammar.sequence({grammar.terminal(grammar.regex().bytes(bytes)),
                                          grammar.call(rules[static_cast<size_t>(next)])}));
    }
    grammar.define(rules[i], choices.empty() ? grammar.nothing() : grammar.either(choices));
  }
  return grammar.call(rules[0]);
}

}  // namespace tgi::guide
