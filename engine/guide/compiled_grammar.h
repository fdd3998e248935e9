// A grammar that matchers run: a pushdown automaton over bytes, each rule a deterministic automaton
// whose edges are bytes, special tokens, or calls of other rules. The automata are made of
// derivatives while texts are matched, so that compiling costs little more than reading.
//
// Thread-safe: what matchers add to it (states, masks) is locked inside, one lock per vocabulary,
// and bounded: tables that grow too large are dropped and made again.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/guide/grammar.h"

namespace tgi::guide {

class Machine;
class Vocabulary;
struct GrammarProgram;

class CompiledGrammar {
 public:
  explicit CompiledGrammar(std::unique_ptr<GrammarProgram> program);
  ~CompiledGrammar();

  // For matchers: the automaton with the masks of one vocabulary.
  std::shared_ptr<Machine> machine(const std::shared_ptr<const Vocabulary>& vocabulary) const;

 private:
  std::unique_ptr<const GrammarProgram> program_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<std::weak_ptr<const Vocabulary>, std::shared_ptr<Machine>>>
      machines_;  // under mutex_
};

struct CompileLimits {
  int32_t max_states = 500'000;    // of all rules: nodes of their expressions
  int64_t max_steps = 20'000'000;  // RegexLimits
};

// Throws kInvalidArgument when the language is empty ("no text can satisfy ...": with the name of
// the rule), a rule is not defined, a rule calls itself before any byte in a way that can't be
// rewritten, or a limit is passed.
std::shared_ptr<const CompiledGrammar> compile_grammar(Grammar& grammar,
                                                       const CompileLimits& limits = {});

}  // namespace tgi::guide
