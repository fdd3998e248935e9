#include "engine/vectors/entity_groups.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace tgi {
namespace {

// What a label says about its token's place in an entity.
struct Place {
  std::string_view tag;  // what the labels of an entity have in common
  bool begins = false;
  bool ends = false;
};

Place place_of(std::string_view label) {
  if (label.size() < 2 || label[1] != '-') return {.tag = label};
  const std::string_view tag = label.substr(2);
  switch (label[0]) {
    case 'B':
      return {.tag = tag, .begins = true};
    case 'I':
      return {.tag = tag};
    case 'E':
      return {.tag = tag, .ends = true};
    case 'S':
      return {.tag = tag, .begins = true, .ends = true};
    default:
      return {.tag = label};
  }
}

// "B-PER" is of the group PER; a label without a dash is a group itself.
std::string_view group_of(std::string_view label) {
  const size_t dash = label.find('-');
  return dash == std::string_view::npos ? label : label.substr(dash + 1);
}

constexpr std::string_view kOutside = "O";

// Where each character begins, and the end.
std::vector<size_t> character_offsets(std::string_view text) {
  std::vector<size_t> out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool continues = (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U;
    if (!continues) out.push_back(i);
  }
  out.push_back(text.size());
  return out;
}

}  // namespace

std::vector<Entity> group_entities(std::span<const LabelledToken> tokens, std::string_view text) {
  std::vector<Entity> out;
  int64_t num_tokens = 0;                // of the last entity
  std::optional<std::string_view> open;  // the tag of that, while others may go on with it
  for (const LabelledToken& token : tokens) {
    const std::string_view group = group_of(token.label);
    const Place place = place_of(token.label);
    if (group == kOutside) {
      open.reset();
      continue;
    }
    if (place.begins || open != place.tag) {
      out.push_back({.group = std::string(group),
                     .score = 0,
                     .word = {},
                     .begin = token.begin,
                     .end = token.end});
      num_tokens = 0;
    }
    open = place.tag;
    if (place.ends) open.reset();
    Entity& entity = out.back();
    entity.score = (entity.score * static_cast<double>(num_tokens) + token.score) /
                   static_cast<double>(num_tokens + 1);
    ++num_tokens;
    entity.end = token.end;
  }
  const std::vector<size_t> at = character_offsets(text);
  for (Entity& entity : out) {
    const size_t from = at[std::min(static_cast<size_t>(entity.begin), at.size() - 1)];
    const size_t to = at[std::min(static_cast<size_t>(entity.end), at.size() - 1)];
    entity.word = std::string(text.substr(from, to - from));
    for (char& c : entity.word) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return out;
}

}  // namespace tgi
