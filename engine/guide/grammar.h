// A context-free grammar over bytes and special tokens: what the readers of JSON Schema, regular
// expressions, GBNF and Lark make, and what compile_grammar() makes an automaton from.
//
//   Grammar grammar;
//   const Rule value = grammar.declare("value");       // may be used before it is defined
//   grammar.define(value, grammar.either({...}));
//   grammar.set_start(value);
//
// Expressions are trees of terminals (regular languages of grammar.regex()), sequences, choices,
// repetitions and calls of rules. Nothing is greedy: a text belongs to the language when some
// derivation gives it. Not thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/guide/regex.h"
#include "engine/guide/token_set.h"

namespace tgi::guide {

struct Rule {
  int32_t id = 0;
  friend bool operator==(Rule, Rule) = default;
};

struct Expr {
  int32_t id = 0;
};

class Grammar {
 public:
  explicit Grammar(const RegexLimits& limits = {}) : regex_(limits) {}

  RegexPool& regex() { return regex_; }

  // All of them throw kInvalidArgument when the grammar passes kMaxNodes.
  Expr empty_text();
  Expr nothing();  // cannot be written: choices that hold it lose it
  Expr text(std::string_view literal);
  Expr terminal(Regex language);
  Expr call(Rule rule);
  Expr special_token(std::string_view name);  // as the vocabulary spells it: "<|tool_call|>"
  Expr token_of(const TokenSet& set);         // one of these
  Expr sequence(std::span<const Expr> parts);
  Expr sequence(std::initializer_list<Expr> parts);
  Expr either(std::span<const Expr> parts);
  Expr either(std::initializer_list<Expr> parts);
  // The same for alternatives that only the ends of their first terminals tell apart, as the names
  // of members of several kinds: these are read side by side and not one after the other.
  Expr either_side_by_side(std::span<const Expr> parts);
  Expr optional(Expr part) { return repeat(part, 0, 1); }
  Expr repeat(Expr part, int32_t min, int32_t max);  // max: kUnbounded, or >= min

  // Items that have to differ: in the body of one rule, which declare_whole() makes, each is
  // sequence({call(item), item_end(list)}), where declare_item(list, ...) made the item's rule,
  // whose body is a terminal (different_items.h says of what). What comes before the next item, or
  // after the last, begins with terminal_in_place() or a literal. `length`: that of the longest of
  // the shortest values, as many as there may be used up where one is needed. `is_endless`: they
  // never run out, whatever they begin with after a quote, and each is at most a byte longer than
  // the next shorter.
  int32_t new_list() { return num_lists_++; }
  Rule declare_item(std::string_view name, int32_t list, int32_t length, bool is_endless);
  Rule declare_whole(std::string_view name);
  Expr item_end(int32_t list);
  // A terminal that is written where it stands, whatever it is.
  Expr terminal_in_place(Regex language);

  Rule declare(std::string_view name);  // for people: in errors
  void define(Rule rule, Expr body);    // REQUIRES: not defined yet
  void set_start(Rule rule) { start_ = rule; }

  static constexpr int32_t kMaxNodes = 2'000'000;

  // For the compiler of grammars.
  enum class Kind : uint8_t { kTerminal, kToken, kCall, kSequence, kEither, kRepeat, kItemEnd };
  struct Node {
    Kind kind = Kind::kTerminal;
    Regex terminal{};
    int32_t rule = -1;
    int32_t min = 0;
    int32_t max = 0;
    int32_t first_part = 0;  // in parts()
    int32_t num_parts = 0;
    int32_t token_set = -1;  // in token_sets()
    int32_t list = -1;       // of an item's end
    bool is_side_by_side = false;
    bool is_in_place = false;
  };
  struct RuleEntry {
    std::string name;
    int32_t body = -1;   // a node; -1: declared and not defined
    int32_t list = -1;   // of which it is an item
    int32_t length = 0;  // of an item
    bool is_endless = false;
    bool is_whole = false;  // never written in place of a call
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<int32_t>& parts() const { return parts_; }
  const std::vector<RuleEntry>& rules() const { return rules_; }
  const std::vector<TokenSet>& token_sets() const { return token_sets_; }
  Rule start() const { return start_; }
  int32_t num_lists() const { return num_lists_; }

 private:
  Expr add(const Node& node);
  Expr add_parts(Kind kind, std::span<const Expr> parts);

  RegexPool regex_;
  std::vector<Node> nodes_;
  std::vector<int32_t> parts_;
  std::vector<RuleEntry> rules_;
  std::vector<TokenSet> token_sets_;
  Rule start_{-1};
  int32_t num_lists_ = 0;
};

}  // namespace tgi::guide
