// A compiled grammar from inside: rules as expressions with calls, without left recursion and
// without parts that no text satisfies. Used by the compiler and by the machine that runs it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/guide/compiled_grammar.h"
#include "engine/guide/expr_pool.h"
#include "engine/guide/grammar.h"

namespace tgi::guide {

struct ProgramRule {
  std::string name;
  int32_t body = ExprPool::kNothing;
  bool nullable = false;
  int32_t min_length = ExprPool::kMaxLength;
  int32_t list = -1;  // Grammar::RuleEntry
};

struct GrammarProgram {
  explicit GrammarProgram(const RegexLimits& limits) : pool(limits) {}

  int32_t call(int32_t rule) {
    const ProgramRule& callee = rules[static_cast<size_t>(rule)];
    return pool.call(rule, callee.nullable, callee.min_length);
  }

  ExprPool pool;
  std::vector<ProgramRule> rules;
  int32_t start = 0;  // an expression
  std::vector<TokenSet> token_sets;
  int32_t num_lists = 0;
  bool has_scarce_items = false;  // some are not endless
};

// What the nodes and rules of a grammar derive.
struct GrammarFacts {
  struct Fact {
    bool nullable = false;
    int32_t min_length = ExprPool::kMaxLength;  // kMaxLength: no text at all
  };
  std::vector<Fact> nodes;
  std::vector<Fact> rules;
  std::vector<uint8_t> is_used;       // by node: reachable from the start
  std::vector<int32_t> rule_order;    // those that can be reached, callees first where possible
  std::vector<int32_t> num_calls;     // by rule: of places
  std::vector<uint8_t> is_recursive;  // by rule
  std::vector<int32_t> terminals;  // by node: the expression of a terminal, in the program's pool
};

// Throws when a rule is not defined or the start derives no text.
GrammarFacts find_facts(Grammar& grammar, GrammarProgram& program);

// Rewrites rules that call themselves before any byte. Throws with the name of one that can't be.
void remove_left_recursion(GrammarProgram& program);

}  // namespace tgi::guide
