#include "engine/guide/json/numbers.h"

#include <algorithm>
#include <utility>

#include "engine/guide/json/number_automaton.h"

namespace tgi::guide {

Numbers::Numbers(RegexPool& pool) : pool_(pool) {
  digit_ = digit_range('0', '9');
  const Regex integer = pool_.either(
      {pool_.literal("0"), pool_.concat({digit_range('1', '9'), digits(0, kUnbounded)})});
  const Regex fraction = optional(pool_.concat({pool_.literal("."), digits(1, kUnbounded)}));
  const Regex minus = optional(pool_.literal("-"));
  unsigned_ = pool_.concat({integer, fraction});
  all_ = pool_.concat({minus, unsigned_});
  const Regex zeros = pool_.repeat(pool_.literal("0"), 1, kUnbounded);
  integer_values_ =
      pool_.concat({minus, integer, optional(pool_.concat({pool_.literal("."), zeros}))});
  plain_integers_ = pool_.either(
      {pool_.literal("0"), pool_.concat({minus, digit_range('1', '9'), digits(0, kUnbounded)})});
  const Regex sign = optional(pool_.either({pool_.literal("+"), pool_.literal("-")}));
  // Of two digits: more would leave the range of a double, and readers would take it for infinite.
  const Regex exponent =
      pool_.concat({pool_.either({pool_.literal("e"), pool_.literal("E")}), sign, digits(1, 2)});
  json_numbers_ = pool_.concat({all_, optional(exponent)});
}

Regex Numbers::digit_range(char first, char last) {
  ByteSet set;
  for (int c = first; c <= last; ++c) set.set(static_cast<size_t>(c));
  return pool_.bytes(set);
}

NumberSet Numbers::of_texts(Regex texts) {
  NumberSet set;
  set.every = false;
  set.texts = texts;
  return set;
}

NumberSet Numbers::either(NumberSet a, const NumberSet& b) {
  for (const Decimal& value : *b.finite) {
    const auto place = std::lower_bound(a.finite->begin(), a.finite->end(), value);
    if (place == a.finite->end() || *place != value) a.finite->insert(place, value);
  }
  return a;
}

NumberSet Numbers::of(std::vector<Decimal> values) const {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  NumberSet set = of_texts(all_);
  set.finite = std::move(values);
  return set;
}

Regex Numbers::value_texts(const Decimal& magnitude) {
  const Regex zeros = pool_.repeat(pool_.literal("0"), 0, kUnbounded);
  if (!magnitude.is_integer()) {
    return pool_.concat({pool_.literal(magnitude.integer + "." + magnitude.fraction), zeros});
  }
  const Regex some = pool_.concat({pool_.literal(".0"), zeros});
  return pool_.concat({pool_.literal(magnitude.integer), optional(some)});
}

// Of the same number of digits the first that differs decides; before the point more digits are
// more.
Regex Numbers::unsigned_at_least(const Decimal& limit) {
  const std::string& whole = limit.integer;
  const auto size = static_cast<int32_t>(whole.size());
  std::vector<Regex> larger = {pool_.concat({digit_range('1', '9'), digits(size, kUnbounded)})};
  for (int32_t i = 0; i < size; ++i) {
    const char digit = whole[static_cast<size_t>(i)];
    if (digit == '9') continue;
    larger.push_back(pool_.concat({pool_.literal(whole.substr(0, static_cast<size_t>(i))),
                                   digit_range(static_cast<char>(digit + 1), '9'),
                                   digits(size - 1 - i, size - 1 - i)}));
  }
  const Regex any_fraction = optional(pool_.concat({pool_.literal("."), digits(1, kUnbounded)}));
  const Regex more = pool_.concat({pool_.either(larger), any_fraction});
  if (limit.is_integer()) {
    return pool_.either({more, pool_.concat({pool_.literal(whole), any_fraction})});
  }
  const std::string& part = limit.fraction;
  std::vector<Regex> fractions = {pool_.concat({pool_.literal(part), digits(0, kUnbounded)})};
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '9') continue;
    fractions.push_back(
        pool_.concat({pool_.literal(part.substr(0, i)),
                      digit_range(static_cast<char>(part[i] + 1), '9'), digits(0, kUnbounded)}));
  }
  return pool_.either({more, pool_.concat({pool_.literal(whole + "."), pool_.either(fractions)})});
}

NumberSet Numbers::at_least(const Decimal& limit, bool exclusive) {
  Decimal magnitude = limit;
  magnitude.negative = false;
  const Regex minus = pool_.literal("-");
  const Regex same = value_texts(magnitude);
  const Regex reach = unsigned_at_least(magnitude);
  if (limit.is_zero()) {
    const Regex positive = pool_.without(unsigned_, same);
    if (exclusive) return of_texts(positive);
    return of_texts(pool_.either({unsigned_, pool_.concat({minus, same})}));
  }
  if (!limit.negative) return of_texts(exclusive ? pool_.without(reach, same) : reach);
  // Above a negative number are the negative ones that reach less far.
  Regex below = pool_.without(unsigned_, reach);
  if (!exclusive) below = pool_.either({below, same});
  return of_texts(pool_.either({unsigned_, pool_.concat({minus, below})}));
}

NumberSet Numbers::at_most(const Decimal& limit, bool exclusive) {
  return of_texts(pool_.without(all_, at_least(limit, !exclusive).texts));
}

std::optional<NumberSet> Numbers::multiples(const Decimal& divisor) {
  std::string digits_of = divisor.integer + divisor.fraction;
  auto decimals = static_cast<int32_t>(divisor.fraction.size());
  while (digits_of.back() == '0') {
    digits_of.pop_back();
    --decimals;
  }
  digits_of.erase(0, digits_of.find_first_not_of('0'));
  constexpr size_t kMaxDigits = 17;
  if (digits_of.size() > kMaxDigits) return std::nullopt;
  int64_t number = std::stoll(digits_of);
  // Multiples of 1 / 10^decimals first: the number of decimals, or of zeros at the end.
  const Regex zero = pool_.literal("0");
  const Regex zeros = pool_.repeat(zero, 0, kUnbounded);
  const Regex minus = optional(pool_.literal("-"));
  Regex texts = integer_values_;
  if (decimals > 0) {
    const Regex fraction = pool_.concat({pool_.literal("."), digits(1, decimals), zeros});
    texts =
        pool_.either({integer_values_,
                      pool_.both(all_, pool_.concat({minus, digits(1, kUnbounded), fraction}))});
  } else if (decimals < 0) {
    const Regex no_fraction = optional(pool_.concat({pool_.literal(".0"), zeros}));
    const Regex rounded = pool_.concat(
        {digit_range('1', '9'), digits(0, kUnbounded), pool_.repeat(zero, -decimals, -decimals)});
    texts = pool_.concat({minus, pool_.either({zero, rounded}), no_fraction});
  }
  NumberSet set = of_texts(texts);
  if (number == 1) return set;
  // 300 | x is 100 | x and 3 | x; of 200, 2 and 100 are not all there is to know.
  if (decimals < 0 && (number % 2 == 0 || number % 5 == 0)) {
    for (int32_t i = decimals; i < 0; ++i) {
      if (number > NumberAutomaton::kMaxStates) return std::nullopt;
      number *= 10;
    }
  }
  if (number > NumberAutomaton::kMaxStates) return std::nullopt;
  set.moduli.push_back({number, std::max(decimals, 0), false});
  return set;
}

NumberSet Numbers::both(const NumberSet& a, const NumberSet& b) {
  if (a.every) return b;
  if (b.every || a == b) return a;
  if (a.finite || b.finite) {
    std::vector<Decimal> values;
    for (const Decimal& value : a.finite ? *a.finite : *b.finite) {
      if (contains(a.finite ? b : a, value)) values.push_back(value);
    }
    return of(std::move(values));
  }
  NumberSet result = of_texts(pool_.both(a.texts, b.texts));
  result.moduli = a.moduli;
  for (const Modulus& modulus : b.moduli) {
    if (std::find(result.moduli.begin(), result.moduli.end(), modulus) == result.moduli.end()) {
      result.moduli.push_back(modulus);
    }
  }
  return result;
}

std::vector<NumberSet> Numbers::complement(const NumberSet& a) {
  if (a.every) return {};
  if (a.finite) {
    std::vector<Regex> values;
    for (Decimal value : *a.finite) {
      const bool negative = value.negative;
      value.negative = false;
      Regex texts = value_texts(value);
      const Regex minus = pool_.literal("-");
      if (value.is_zero()) texts = pool_.concat({optional(minus), texts});
      if (negative) texts = pool_.concat({minus, texts});
      values.push_back(texts);
    }
    return {of_texts(pool_.without(all_, pool_.either(values)))};
  }
  std::vector<NumberSet> parts = {of_texts(pool_.without(all_, a.texts))};
  for (Modulus modulus : a.moduli) {
    NumberSet part = of_texts(all_);
    modulus.negated = !modulus.negated;
    part.moduli.push_back(modulus);
    parts.push_back(part);
  }
  return parts;
}

bool Numbers::is_surely_empty(const NumberSet& a) {
  if (a.every) return false;
  if (a.finite) return a.finite->empty();
  if (a.moduli.empty()) return pool_.is_empty(a.texts);
  return NumberAutomaton::is_surely_empty(pool_, a);
}

bool Numbers::contains(const NumberSet& a, const Decimal& value) {
  if (a.every) return true;
  if (a.finite) return std::binary_search(a.finite->begin(), a.finite->end(), value);
  const auto in = [&](const Modulus& modulus) { return holds(modulus, value); };
  return pool_.matches(a.texts, value.text()) && std::all_of(a.moduli.begin(), a.moduli.end(), in);
}

// Integers as 1, not as 1.0.
Regex Numbers::written(const NumberSet& a) {
  if (!pool_.is_empty(pool_.without(a.texts, integer_values_))) return a.texts;
  return pool_.both(a.texts, plain_integers_);
}

Expr Numbers::print(Grammar& grammar, const NumberSet& a) {
  if (a.every) return grammar.terminal(json_numbers_);
  if (a.finite) {
    std::vector<Expr> values;
    for (const Decimal& value : *a.finite) values.push_back(grammar.text(value.text()));
    return values.empty() ? grammar.nothing() : grammar.either(values);
  }
  if (a.moduli.empty()) return grammar.terminal(written(a));
  NumberSet set = a;
  set.texts = written(a);
  return NumberAutomaton(pool_, set).print(grammar);
}

std::optional<Regex> Numbers::plain_texts(const NumberSet& a) {
  if (a.every) return all_;
  if (a.finite) {
    std::vector<Regex> values;
    for (const Decimal& value : *a.finite) values.push_back(pool_.literal(value.text()));
    return pool_.either(values);
  }
  if (!a.moduli.empty()) return std::nullopt;
  return written(a);
}

}  // namespace tgi::guide
