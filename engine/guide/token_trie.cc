// What the nodes of the vocabulary's trie say about the paths below them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/guide/vocabulary.h"

namespace tgi::guide {
namespace {

// Where in a character of UTF-8 a path stands: how many bytes are still to come, and the range of
// the next of them (RFC 3629: no overlong forms, no surrogates).
struct Utf8Place {
  uint8_t num_left = 0;
  uint8_t first = 0x80;
  uint8_t last = 0xBF;
};

Utf8Place after_lead(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {.num_left = 1};
  if (byte == 0xE0) return {.num_left = 2, .first = 0xA0};
  if (byte == 0xED) return {.num_left = 2, .last = 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {.num_left = 2};
  if (byte == 0xF0) return {.num_left = 3, .first = 0x90};
  if (byte >= 0xF1 && byte <= 0xF3) return {.num_left = 3};
  if (byte == 0xF4) return {.num_left = 3, .last = 0x8F};
  return {};
}

struct Step {
  Utf8Place place;
  bool is_valid = true;
};

// What is no UTF-8 ends the character: what follows may be a part of others again.
Step step(const Utf8Place& from, uint8_t byte) {
  if (from.num_left > 0 && byte >= from.first && byte <= from.last)
    return {{.num_left = static_cast<uint8_t>(from.num_left - 1)}, true};
  const Utf8Place place = after_lead(byte);
  return {place, from.num_left == 0 && (byte < 0x80 || place.num_left > 0)};
}

}  // namespace

void TokenTrie::describe() {
  const auto count = static_cast<size_t>(size());
  std::vector<size_t> parents(count, 0);
  std::vector<Step> steps(count);
  std::vector<size_t> path{0};  // by depth
  node_characters.assign(count, 0);
  for (size_t node = 1; node < count; ++node) {
    path.resize(nodes[node].depth);
    parents[node] = path.back();
    steps[node] = step(steps[path.back()].place, nodes[node].byte);
    path.push_back(node);
    node_characters[node] = static_cast<uint16_t>(
        node_characters[parents[node]] + static_cast<uint16_t>(begins_character(nodes[node].byte)));
  }
  token_characters.clear();
  for (size_t node = 0; node < count; ++node) {
    for (int32_t i = nodes[node].token_begin; i < nodes[node + 1].token_begin; ++i)
      token_characters.push_back(node_characters[node]);
  }
  for (size_t node = count - 1; node > 0; --node) {
    const Node& own = nodes[node];
    Node& above = nodes[parents[node]];
    above.ascii[0] |= own.ascii[0];
    above.ascii[1] |= own.ascii[1];
    above.leads |= own.leads;
    above.height = std::max(above.height, static_cast<uint16_t>(own.height + 1));
    above.is_broken |= own.is_broken || !steps[node].is_valid;
    if (nodes[node].byte < 0x80) {
      above.ascii[nodes[node].byte / 64U] |= uint64_t{1} << (nodes[node].byte % 64U);
    } else if (begins_character(nodes[node].byte)) {
      above.leads |= lead_bit(nodes[node].byte);
    }
  }
  for (size_t node = 0; node < count; ++node)
    nodes[node].is_broken |= steps[node].place.num_left > 0;

  first_child.assign(count + 1, 0);
  for (size_t node = 1; node < count; ++node) ++first_child[parents[node] + 1];
  for (size_t node = 0; node < count; ++node) first_child[node + 1] += first_child[node];
  children.resize(count - 1);
  child_bytes.resize(count - 1);
  std::vector<int32_t> next_child = first_child;
  for (size_t node = 1; node < count; ++node) {
    const auto place = static_cast<size_t>(next_child[parents[node]]++);
    children[place] = static_cast<int32_t>(node);
    child_bytes[place] = nodes[node].byte;
  }
  by_byte_begin.assign(257, 0);
  for (size_t node = 1; node < count; ++node) ++by_byte_begin[nodes[node].byte + size_t{1}];
  for (size_t b = 0; b < 256; ++b) by_byte_begin[b + 1] += by_byte_begin[b];
  by_byte.resize(count - 1);
  std::vector<int32_t> fill = by_byte_begin;
  for (size_t node = 1; node < count; ++node)
    by_byte[static_cast<size_t>(fill[nodes[node].byte]++)] = static_cast<int32_t>(node);
}

}  // namespace tgi::guide
