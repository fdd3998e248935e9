#include "engine/text/tokenizer/split.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace tgi {
namespace {

struct Part {
  TextRange range;
  bool delimiter;
};

struct BehaviorRow {
  std::string_view name;
  SplitBehavior behavior;
};
constexpr BehaviorRow kBehaviors[] = {
    {"Removed", SplitBehavior::kRemoved},
    {"Isolated", SplitBehavior::kIsolated},
    {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
    {"MergedWithNext", SplitBehavior::kMergedWithNext},
    {"Contiguous", SplitBehavior::kContiguous},
};

// Matches and what is between them; together they are all of `whole`.
std::vector<Part> cover(TextRange whole, std::span<const TextRange> matches, bool invert) {
  std::vector<Part> parts;
  parts.reserve(2 * matches.size() + 1);
  size_t begin = whole.begin;
  for (const TextRange& match : matches) {
    if (begin != match.begin) parts.push_back({{begin, match.begin}, invert});
    parts.push_back({match, !invert});
    begin = match.end;
  }
  if (begin != whole.end) parts.push_back({{begin, whole.end}, invert});
  return parts;
}

// A delimiter joins its neighbour unless that one is a delimiter too.
void merge_with_previous(std::vector<Part>& parts) {
  std::vector<Part> merged;
  bool after_delimiter = false;
  for (const Part& part : parts) {
    if (part.delimiter && !after_delimiter && !merged.empty()) {
      merged.back().range.end = part.range.end;
    } else {
      merged.push_back(part);
    }
    after_delimiter = part.delimiter;
  }
  parts = std::move(merged);
}

void merge_with_next(std::vector<Part>& parts) {
  std::vector<Part> merged;  // backwards
  bool before_delimiter = false;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->delimiter && !before_delimiter && !merged.empty()) {
      merged.back().range.begin = part->range.begin;
    } else {
      merged.push_back(*part);
    }
    before_delimiter = part->delimiter;
  }
  std::reverse(merged.begin(), merged.end());
  parts = std::move(merged);
}

void merge_runs(std::vector<Part>& parts) {
  std::vector<Part> merged;
  bool last_delimiter = false;
  for (const Part& part : parts) {
    if (part.delimiter == last_delimiter && !merged.empty()) {
      merged.back().range.end = part.range.end;
    } else {
      merged.push_back(part);
    }
    last_delimiter = part.delimiter;
  }
  parts = std::move(merged);
}

}  // namespace

void find_literal(std::string_view text,
                  std::string_view literal,
                  std::vector<TextRange>& matches) {
  size_t at = text.find(literal);
  while (at != std::string_view::npos) {
    matches.push_back({at, at + literal.size()});
    at = text.find(literal, at + literal.size());
  }
}

Pattern::Pattern(const JsonReader& component) {
  const JsonReader pattern = component.object("pattern");
  if (const auto text = pattern.optional_string("String"); text && !text->empty()) {
    literal_ = *text;
    return;
  }
  try {
    // An empty string is the empty expression: it matches between all characters.
    regex_ = std::make_unique<Regex>(pattern.has("String") ? "" : pattern.string("Regex"));
  } catch (const Error& error) {
    throw error.in(pattern.path_of("Regex"));
  }
}

void Pattern::find_all(std::string_view text, std::vector<TextRange>& matches) const {
  if (regex_ != nullptr) {
    regex_->find_all(text, matches);
    return;
  }
  find_literal(text, literal_, matches);
}

SplitBehavior read_split_behavior(const JsonReader& component, SplitBehavior fallback) {
  if (!component.has("behavior")) return fallback;
  const std::string name = component.string("behavior");
  for (const BehaviorRow& row : kBehaviors) {
    if (row.name == name) return row.behavior;
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: \"{}\" is none of Removed, Isolated, MergedWithPrevious, "
                          "MergedWithNext, Contiguous",
                          component.path_of("behavior"), name));
}

void split_at(TextRange whole,
              std::span<const TextRange> matches,
              SplitBehavior behavior,
              bool invert,
              std::vector<TextRange>& pieces) {
  if (behavior == SplitBehavior::kIsolated) {  // by far the most common
    size_t begin = whole.begin;
    for (const TextRange& match : matches) {
      if (begin != match.begin) pieces.push_back({begin, match.begin});
      if (match.size() != 0) pieces.push_back(match);
      begin = match.end;
    }
    if (begin != whole.end) pieces.push_back({begin, whole.end});
    return;
  }
  std::vector<Part> parts = cover(whole, matches, invert);
  if (behavior == SplitBehavior::kMergedWithPrevious) merge_with_previous(parts);
  if (behavior == SplitBehavior::kMergedWithNext) merge_with_next(parts);
  if (behavior == SplitBehavior::kContiguous) merge_runs(parts);
  for (const Part& part : parts) {
    const bool removed = behavior == SplitBehavior::kRemoved && part.delimiter;
    if (!removed && part.range.size() != 0) pieces.push_back(part.range);
  }
}

}  // namespace tgi
