// Cutting a text at the matches of a pattern, as tokenizer.json's Split, Punctuation, Digits and
// Metaspace do.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/text/unicode/regex.h"

namespace tgi {

// Where `literal`, which is not empty, is in the text, in order and without overlap.
void find_literal(std::string_view text, std::string_view literal, std::vector<TextRange>& matches);

// {"String": "..."} or {"Regex": "..."}. Immutable.
class Pattern {
 public:
  // Reads the member "pattern" of a Split or a Replace.
  explicit Pattern(const JsonReader& component);

  // Finds what Regex::find_all does.
  void find_all(std::string_view text, std::vector<TextRange>& matches) const;

 private:
  std::string literal_;           // when there is no regex_; not empty
  std::unique_ptr<Regex> regex_;  // or null
};

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Reads the member "behavior"; absent: `fallback`.
SplitBehavior read_split_behavior(const JsonReader& component, SplitBehavior fallback);

// Appends to `pieces` the parts, none empty, that `matches` cut `whole` into. Matches are in order,
// without overlap, inside `whole`. invert: the matches are the text and the rest is the delimiter.
void split_at(TextRange whole,
              std::span<const TextRange> matches,
              SplitBehavior behavior,
              bool invert,
              std::vector<TextRange>& pieces);

}  // namespace tgi
