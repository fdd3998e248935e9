// Sets of strings: a list, or a regular language with limits of the number of characters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/guide/grammar.h"
#include "engine/guide/json/json_text_regex.h"
#include "engine/guide/regex.h"

namespace tgi::guide {

struct StringSet {
  std::optional<std::vector<std::string>> finite;  // sorted; then what follows does not count
  std::optional<Regex> language;                   // of the values, not of their texts
  int64_t min_length = 0;
  int64_t max_length = kUnbounded;
  // Where in the schema there is a limit of which less is known than it means: values that it
  // allows are missing here; or values are here that it does not allow, as of what is not of a
  // format that is narrowed. The latter can't be printed.
  std::string narrowed_at{};
  std::string widened_at{};

  bool is_every() const {
    return !finite && !language && min_length == 0 && max_length == kUnbounded;
  }
  friend bool operator==(const StringSet&, const StringSet&) = default;
};

// Around the texts of strings.
enum class Quotes : uint8_t {
  kDouble,
  kEither,  // or single ones, as Python has them
};

// Not thread-safe; belongs to one grammar.
class Strings {
 public:
  explicit Strings(RegexPool& pool) : pool_(pool), texts_(pool) {}

  StringSet of(std::vector<std::string> values) const;
  StringSet of(Regex language) const;

  static StringSet either(StringSet a, const StringSet& b);  // REQUIRES: both finite
  StringSet both(const StringSet& a, const StringSet& b);
  std::vector<StringSet> complement(const StringSet& a);  // their union
  bool is_empty(const StringSet& a);
  bool contains(const StringSet& a, std::string_view value);
  Regex language_of(const StringSet& a);
  Regex language_of(std::span<const std::string> values);  // REQUIRES: sorted

  // Throws where the set has values that the schema does not allow; so does print().
  static void check_exact(const StringSet& a);
  Expr print(Grammar& grammar, const StringSet& a, Quotes quotes = Quotes::kDouble);
  // The same in canonical texts alone, with quotes.
  Regex canonical_texts(const StringSet& a);
  // A name of a property, with its quotes: of `names`, but none of `excluded`, which are sorted.
  Expr print_name(Grammar& grammar,
                  Regex names,
                  std::span<const std::string> excluded,
                  Quotes quotes = Quotes::kDouble);

 private:
  Expr print_in(Grammar& grammar, const StringSet& a, char quote);
  Regex language_in(Regex language, char quote);
  StringSet both_values(const StringSet& a, const StringSet& b);

  RegexPool& pool_;
  JsonTextRegex texts_;
  std::map<char, Rule> any_string_;      // by the quotes around it
  std::optional<Regex> without_quotes_;  // texts that have none
};

// `unit` from min to max times (kUnbounded: without a limit), in blocks that are rules of their own
// where that is many times, so that the automaton grows with the logarithm.
Expr repeat_in_blocks(Grammar& grammar, Expr unit, int64_t min, int64_t max);

}  // namespace tgi::guide
