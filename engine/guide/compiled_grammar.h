// A grammar as a pushdown automaton over bytes: each rule a deterministic automaton whose edges are
// bytes, special tokens, or calls of other rules. Immutable but for the masks it caches.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/guide/grammar.h"

namespace tgi::guide {

class CompiledGrammar;

struct CompileLimits {
  int32_t max_states = 500'000;  // of all rules
};

// Throws kInvalidArgument when the language is empty ("no text can satisfy ...": with the name of
// the rule), a rule is not defined, a rule calls itself before any byte, or a limit is passed.
std::shared_ptr<const CompiledGrammar> compile_grammar(Grammar& grammar,
                                                       const CompileLimits& limits = {});

}  // namespace tgi::guide
