// Named entities of a text out of a label for each token: LoRAX's way of putting them together. A
// label B-X begins an entity of the group X, I-X goes on with one that is of X, E-X does so for the
// last time, S-X is one by itself. Any other goes on with one of the same label, as the pipeline of
// transformers has it: its group is what stands behind a dash, else the label. O is none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tgi {

// Of one token of the text; what marks a text's ends is no such token.
struct LabelledToken {
  std::string label;  // the likeliest
  double score = 0;
  int64_t begin = 0;  // characters of the text
  int64_t end = 0;
};

struct Entity {
  std::string group;
  double score = 0;   // the mean over its tokens
  std::string word;   // its part of the text, in lower case
  int64_t begin = 0;  // characters of the text
  int64_t end = 0;

  bool operator==(const Entity&) const = default;
};

std::vector<Entity> group_entities(std::span<const LabelledToken> tokens, std::string_view text);

}  // namespace tgi
