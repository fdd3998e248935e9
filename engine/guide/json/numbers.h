// Sets of numbers as the texts that JSON writes them with.
//
// A set holds all writings of a number without an exponent or none of them (1, 1.0, 1.00), so that
// "and" and "not" of texts are those of numbers. Exponents are written only where nothing limits
// the number. Written are integers without a point where the set has nothing but integers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/guide/grammar.h"
#include "engine/guide/json/decimal.h"
#include "engine/guide/regex.h"

namespace tgi::guide {

// Multiples (or, negated, all others) of divisor / 10^decimals.
struct Modulus {
  int64_t divisor = 1;
  int32_t decimals = 0;
  bool negated = false;
  friend bool operator==(const Modulus&, const Modulus&) = default;
};

struct NumberSet {
  bool every = true;                           // in all writings; what follows does not count
  std::optional<std::vector<Decimal>> finite;  // sorted; then what follows does not count
  Regex texts;
  std::vector<Modulus> moduli;  // all of them hold
  friend bool operator==(const NumberSet&, const NumberSet&) = default;
};

// Not thread-safe; belongs to one grammar.
class Numbers {
 public:
  explicit Numbers(RegexPool& pool);

  NumberSet integers() const { return of_texts(integer_values_); }
  NumberSet at_least(const Decimal& limit, bool exclusive);
  NumberSet at_most(const Decimal& limit, bool exclusive);
  // Nothing when the divisor has too many digits. REQUIRES: above zero.
  std::optional<NumberSet> multiples(const Decimal& divisor);
  NumberSet of(std::vector<Decimal> values) const;

  static NumberSet either(NumberSet a, const NumberSet& b);  // REQUIRES: both finite
  NumberSet both(const NumberSet& a, const NumberSet& b);
  std::vector<NumberSet> complement(const NumberSet& a);  // their union
  // Says no, too, where there are too many remainders to look at.
  bool is_surely_empty(const NumberSet& a);
  bool contains(const NumberSet& a, const Decimal& value);

  Expr print(Grammar& grammar, const NumberSet& a);
  // The same as one language, without exponents; nothing where that takes rules.
  std::optional<Regex> plain_texts(const NumberSet& a);

 private:
  static NumberSet of_texts(Regex texts);
  Regex unsigned_at_least(const Decimal& limit);
  Regex written(const NumberSet& a);
  Regex value_texts(const Decimal& magnitude);  // all writings of it, without a sign
  Regex optional(Regex part) { return pool_.repeat(part, 0, 1); }
  Regex digits(int32_t min, int32_t max) { return pool_.repeat(digit_, min, max); }
  Regex digit_range(char first, char last);

  RegexPool& pool_;
  Regex digit_;
  Regex unsigned_;        // without an exponent
  Regex all_;             // ... with or without a sign
  Regex integer_values_;  // 1, 1.0
  Regex plain_integers_;  // 1
  Regex json_numbers_;    // with exponents too
};

}  // namespace tgi::guide
