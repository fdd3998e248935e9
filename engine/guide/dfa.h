// The minimal automaton of a regular expression.
#pragma once

#include <cstdint>

#include "engine/guide/expr_pool.h"
#include "engine/guide/regex.h"

namespace tgi::guide {

// Throws kInvalidArgument when there would be more than the pool's max_dfa_states. Source of the
// minimisation: J. Hopcroft, "An n log n algorithm for minimizing states in a finite automaton"
// (1971).
Dfa minimal_dfa(ExprPool& pool, int32_t expr);

}  // namespace tgi::guide
