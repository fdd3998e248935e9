#include "engine/guide/json/strings.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/guide/json/refusal.h"
#include "engine/guide/listed_texts.h"

namespace tgi::guide {
namespace {

constexpr int64_t kBlock = 128;

int32_t repetitions(int64_t count) {
  if (count > std::numeric_limits<int32_t>::max()) {
    throw Error(Code::kInvalidArgument, "a length of " + std::to_string(count) + " is too large");
  }
  return static_cast<int32_t>(count);
}

Rule block_of(Grammar& grammar, Expr unit) {
  const Rule block = grammar.declare("block");
  grammar.define(block, grammar.repeat(unit, kBlock, kBlock));
  return block;
}

Expr exactly(Grammar& grammar, Expr unit, int64_t count) {
  if (count <= kBlock) return grammar.repeat(unit, repetitions(count), repetitions(count));
  const Expr block = grammar.call(block_of(grammar, unit));
  const auto rest = repetitions(count % kBlock);
  return grammar.sequence(
      {exactly(grammar, block, count / kBlock), grammar.repeat(unit, rest, rest)});
}

Expr at_most(Grammar& grammar, Expr unit, int64_t count) {
  if (count <= kBlock) return grammar.repeat(unit, 0, repetitions(count));
  const Expr block = grammar.call(block_of(grammar, unit));
  const int64_t blocks = count / kBlock;
  // Whole blocks and a part of one: every number of units in one way.
  return grammar.either(
      {grammar.sequence({at_most(grammar, block, blocks - 1), grammar.repeat(unit, 0, kBlock - 1)}),
       grammar.sequence({exactly(grammar, block, blocks),
                         grammar.repeat(unit, 0, repetitions(count % kBlock))})});
}

void take_places(const StringSet& from, StringSet& to) {
  if (to.narrowed_at.empty()) to.narrowed_at = from.narrowed_at;
  if (to.widened_at.empty()) to.widened_at = from.widened_at;
}

}  // namespace

Expr repeat_in_blocks(Grammar& grammar, Expr unit, int64_t min, int64_t max) {
  // One loop, whose masks are known for all counts.
  if (min <= kBlock && max <= kBlock) {
    return grammar.repeat(unit, repetitions(min),
                          max == kUnbounded ? kUnbounded : repetitions(max));
  }
  if (max == kUnbounded) {
    return grammar.sequence({exactly(grammar, unit, min), grammar.repeat(unit, 0, kUnbounded)});
  }
  return grammar.sequence({exactly(grammar, unit, min), at_most(grammar, unit, max - min)});
}

StringSet Strings::of(std::vector<std::string> values) const {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  StringSet set;
  set.finite = std::move(values);
  return set;
}

StringSet Strings::of(Regex language) const {
  StringSet set;
  set.language = language;
  return set;
}

StringSet Strings::either(StringSet a, const StringSet& b) {
  take_places(b, a);
  for (const std::string& value : *b.finite) {
    const auto place = std::lower_bound(a.finite->begin(), a.finite->end(), value);
    if (place == a.finite->end() || *place != value) a.finite->insert(place, value);
  }
  return a;
}

StringSet Strings::both(const StringSet& a, const StringSet& b) {
  if (a == b || b.is_every()) return a;
  if (a.is_every()) return b;
  StringSet result = both_values(a, b);
  take_places(a, result);
  take_places(b, result);
  return result;
}

StringSet Strings::both_values(const StringSet& a, const StringSet& b) {
  if (a.finite && b.finite) {
    std::vector<std::string> values;
    std::set_intersection(a.finite->begin(), a.finite->end(), b.finite->begin(), b.finite->end(),
                          std::back_inserter(values));
    return of(std::move(values));
  }
  if (a.finite || b.finite) {
    std::vector<std::string> values;
    for (const std::string& value : a.finite ? *a.finite : *b.finite) {
      if (contains(a.finite ? b : a, value)) values.push_back(value);
    }
    return of(std::move(values));
  }
  StringSet result = a;
  if (!result.language) {
    result.language = b.language;
  } else if (b.language) {
    result.language = pool_.both(*a.language, *b.language);
  }
  result.min_length = std::max(a.min_length, b.min_length);
  if (result.max_length == kUnbounded) {
    result.max_length = b.max_length;
  } else if (b.max_length != kUnbounded) {
    result.max_length = std::min(a.max_length, b.max_length);
  }
  return result;
}

std::vector<StringSet> Strings::complement(const StringSet& a) {
  std::vector<StringSet> parts;
  if (a.finite || a.language) {
    const Regex values = a.finite ? language_of(*a.finite) : *a.language;
    parts.push_back(of(pool_.without(pool_.any_text(), values)));
    parts.back().narrowed_at = a.widened_at;
    parts.back().widened_at = a.narrowed_at;
  }
  if (a.finite) return parts;
  if (a.min_length > 0) {
    parts.emplace_back();
    parts.back().max_length = a.min_length - 1;
  }
  if (a.max_length != kUnbounded) {
    parts.emplace_back();
    parts.back().min_length = a.max_length + 1;
  }
  return parts;
}

bool Strings::is_empty(const StringSet& a) {
  if (a.finite) return a.finite->empty();
  if (a.max_length != kUnbounded && a.min_length > a.max_length) return true;
  return a.language && pool_.is_empty(language_of(a));
}

bool Strings::contains(const StringSet& a, std::string_view value) {
  if (a.finite) {
    return std::binary_search(a.finite->begin(), a.finite->end(), std::string(value));
  }
  const int64_t length = count_utf8_characters(value);
  if (length < a.min_length || (a.max_length != kUnbounded && length > a.max_length)) return false;
  return !a.language || pool_.matches(*a.language, value);
}

Regex Strings::language_of(std::span<const std::string> values) {
  return any_of_texts(pool_, values);
}

Regex Strings::language_of(const StringSet& a) {
  if (a.finite) return language_of(*a.finite);
  Regex language = a.language.value_or(pool_.any_text());
  if (a.min_length > 0 || a.max_length != kUnbounded) {
    const int32_t max = a.max_length == kUnbounded ? kUnbounded : repetitions(a.max_length);
    language =
        pool_.both(language, pool_.repeat(pool_.any_character(), repetitions(a.min_length), max));
  }
  return language;
}

void Strings::check_exact(const StringSet& a) {
  if (a.widened_at.empty()) return;
  refuse_schema(
      a.widened_at,
      "that a string is not of this format, or of just one of several, cannot be enforced");
}

Expr Strings::print(Grammar& grammar, const StringSet& a, Quotes quotes) {
  check_exact(a);
  const Expr in_double = print_in(grammar, a, '"');
  if (quotes == Quotes::kDouble) return in_double;
  return grammar.either({in_double, print_in(grammar, a, '\'')});
}

// In single quotes only those that have neither: a language is not told what trades places.
Regex Strings::language_in(Regex language, char quote) {
  if (quote != '"') {
    if (!without_quotes_) {
      const CodePointRange others[] = {{0, '!'}, {'#', '&'}, {'(', 0xD7FF}, {0xE000, 0x10FFFF}};
      without_quotes_ = pool_.repeat(pool_.code_points(others), 0, kUnbounded);
    }
    language = pool_.both(language, *without_quotes_);
  }
  const Regex mark = pool_.literal(std::string(1, quote));
  return pool_.concat({mark, texts_.canonical(language), mark});
}

Expr Strings::print_in(Grammar& grammar, const StringSet& a, char quote) {
  if (a.finite) {
    std::vector<std::string> texts;
    texts.reserve(a.finite->size());
    for (const std::string& value : *a.finite) {
      texts.push_back(quote == '"' ? quoted_json(value) : quoted_python(value));
    }
    std::sort(texts.begin(), texts.end());
    return grammar.terminal(language_of(texts));
  }
  if (a.language) return grammar.terminal(language_in(language_of(a), quote));
  const Regex around = pool_.literal(std::string(1, quote));
  if (!a.is_every()) {
    if (is_empty(a)) return grammar.nothing();
    const Expr mark = grammar.terminal(around);
    const Expr character = grammar.terminal(texts_.any_character(quote));
    // Characters are counted by the states of one loop, which are made as the text grows, and whose
    // masks are known for all counts. The shortest way to the end is walked: bounds of which that
    // is long are cut into blocks.
    constexpr int64_t kMaxLeast = 10'000;
    constexpr int64_t kMaxMost = 1'000'000;
    const bool is_one_loop = a.min_length <= kMaxLeast && a.max_length <= kMaxMost;
    const Expr characters =
        is_one_loop
            ? grammar.repeat(character, repetitions(a.min_length),
                             a.max_length == kUnbounded ? kUnbounded : repetitions(a.max_length))
            : repeat_in_blocks(grammar, character, a.min_length, a.max_length);
    return grammar.sequence({mark, characters, mark});
  }
  const auto [place, is_new] = any_string_.try_emplace(quote, Rule{});
  if (is_new) {
    place->second = grammar.declare("string");
    const Regex characters = pool_.repeat(texts_.any_character(quote), 0, kUnbounded);
    grammar.define(place->second, grammar.terminal(pool_.concat({around, characters, around})));
  }
  return grammar.call(place->second);
}

Regex Strings::canonical_texts(const StringSet& a) {
  check_exact(a);
  if (a.finite) {
    std::vector<std::string> texts;
    for (const std::string& value : *a.finite) texts.push_back(quoted_json(value));
    std::sort(texts.begin(), texts.end());
    return language_of(texts);
  }
  const Regex quote = pool_.literal("\"");
  if (a.language) return pool_.concat({quote, texts_.canonical(language_of(a)), quote});
  const int32_t max = a.max_length == kUnbounded ? kUnbounded : repetitions(a.max_length);
  const Regex character = pool_.json_escaped(pool_.any_character());
  return pool_.concat({quote, pool_.repeat(character, repetitions(a.min_length), max), quote});
}

Expr Strings::print_name(Grammar& grammar,
                         Regex names,
                         std::span<const std::string> excluded,
                         Quotes quotes) {
  const Regex others = excluded.empty() ? names : pool_.without(names, language_of(excluded));
  const Regex in_double = language_in(others, '"');
  if (quotes == Quotes::kDouble) return grammar.terminal(in_double);
  return grammar.terminal(pool_.either({in_double, language_in(others, '\'')}));
}

}  // namespace tgi::guide
