// Regular languages over bytes, as expressions: written by hand or parsed from a pattern, combined
// with "and" and "not", asked whether they are empty, and made into automata.
//
// Expressions are nodes of a pool: equal ones have equal ids, and trivial ones are simplified as
// they are made (the union with nothing, a repetition of the empty text, double complements). Text
// is UTF-8: the sets of characters of a pattern are ranges of code points that become sequences of
// bytes, without surrogates and overlong forms.
//
// Not thread-safe; one pool per compilation. Source of the automata: J. Brzozowski, "Derivatives of
// Regular Expressions" (1964); S. Owens, J. Reppy, A. Turon, "Regular-expression derivatives
// re-examined" (2009).
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tgi::guide {

using ByteSet = std::bitset<256>;

class ExprPool;

// An expression of a pool.
struct Regex {
  int32_t id = 0;
  friend bool operator==(Regex, Regex) = default;
};

struct CodePointRange {
  char32_t first = 0;
  char32_t last = 0;  // inclusive
};

constexpr int32_t kUnbounded = -1;

// Deterministic and minimal; every state that is left out is dead.
struct Dfa {
  static constexpr int32_t kDead = -1;
  struct State {
    std::array<int32_t, 256> next;  // kDead: no text of the language goes on with that byte
    bool accepts = false;
  };
  std::vector<State> states;  // the first is the start; empty: the language is empty
};

struct RegexLimits {
  int32_t max_nodes = 1'000'000;    // of a pool
  int32_t max_dfa_states = 20'000;  // of one automaton, before it is minimised
  // Of all that is done with a pool, of some 20 ns each: what bounds the time that a pattern takes.
  int64_t max_steps = 20'000'000;
};

class RegexPool {
 public:
  explicit RegexPool(const RegexLimits& limits = {});
  ~RegexPool();
  RegexPool(const RegexPool&) = delete;
  RegexPool& operator=(const RegexPool&) = delete;

  // All of them throw kInvalidArgument when the pool is full ("... is too large") or its steps are
  // used up ("... takes too much work").
  Regex nothing();     // the empty language
  Regex empty_text();  // the language of the empty text alone
  Regex bytes(const ByteSet& set);
  Regex literal(std::string_view text);
  Regex code_points(std::span<const CodePointRange> ranges);  // one character of UTF-8
  Regex any_character();                                      // one character of UTF-8
  Regex any_text();                                           // any number of them
  Regex concat(std::span<const Regex> parts);
  Regex concat(std::initializer_list<Regex> parts);
  Regex either(std::span<const Regex> parts);
  Regex either(std::initializer_list<Regex> parts);
  Regex both(Regex a, Regex b);
  Regex complement(Regex a);  // of all byte strings; intersect with any_text() for texts
  Regex without(Regex a, Regex b) { return both(a, complement(b)); }
  Regex repeat(Regex a, int32_t min, int32_t max);  // max: kUnbounded, or >= min

  // Counts work on an expression that makes nothing new.
  void count_steps(size_t steps);

  // The inside of JSON strings (RFC 8259, without the quotes) whose value is a text of `a`: every
  // character as it is, if JSON allows that, else as any of its escape sequences.
  Regex json_escaped(Regex a);

  bool accepts_empty_text(Regex a) const;
  // The bytes that its texts may have, and perhaps others; costs little.
  ByteSet possible_bytes(Regex a);

  // Throw kInvalidArgument when an automaton would pass max_dfa_states.
  bool is_empty(Regex a);
  bool matches(Regex a, std::string_view text);
  Dfa dfa(Regex a);

  // Of a language of JSON values (different_items.h): so long are the `count` shortest that differ,
  // from the shortest on; fewer where there aren't so many.
  std::vector<int32_t> lengths_of_different_values(Regex a, int32_t count);

  // For the compiler of grammars.
  const ExprPool& expressions() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

enum class RegexUse {
  kWhole,   // the pattern describes the whole text (the `regex` of a request)
  kSearch,  // it is found somewhere in the text unless anchored (the `pattern` of JSON Schema)
};

// Where the dialects read the same characters in different ways.
enum class RegexSyntax {
  kEcma,         // of JSON Schema's `pattern`, and of Python's
  kRustClasses,  // [[:alpha:]], [a[bc]], [a-z&&[^x]], [a-z--[x]] and [a-f~~[d-i]] as Rust has them,
                 // but what has a meaning by ECMA-262 alone keeps it ([+--/])
  kRust,         // classes, and what ends a line: \n alone
};

// The syntax of ECMA-262 with the `u` flag, as far as it is regular, with what Rust's and Python's
// `re` add to that: (?:...), (?i), (?x)-less inline flags, \A \z \Z, \d \w \s \b-less classes,
// \p{...} general categories and scripts that the tables of this build know, {n,m}, lazy marks
// (which change nothing in a whole match), ^ and $ at the borders of the text and inside
// alternatives, lookahead (?=...) and (?!...), which are "and" and "and not" of what follows.
// Throws kInvalidArgument or, for what is known and not regular (back references, lookbehind, word
// borders in the middle), kUnsupported: each with the place in the pattern and what was found
// there.
Regex parse_regex(RegexPool& pool,
                  std::string_view pattern,
                  RegexUse use,
                  RegexSyntax syntax = RegexSyntax::kEcma);

}  // namespace tgi::guide
