// Pieces of a vocabulary by their bytes, to find all that a text begins with in one walk.
// Immutable.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tgi {

class PieceTrie {
 public:
  struct Entry {
    std::string_view text;
    int32_t value;  // 0 or more
  };
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNone = UINT32_MAX;

  // Texts that are empty are left out. REQUIRES: no text comes twice.
  explicit PieceTrie(std::vector<Entry> entries);

  // The node one byte further, or kNone.
  uint32_t child(uint32_t node, char byte) const {
    const auto label = static_cast<unsigned char>(byte);
    return node == kRoot ? first_[label] : find_child(nodes_[node], label);
  }

  uint32_t descend(uint32_t node, std::string_view text) const;

  // Of the piece that ends at `node`, or -1. REQUIRES: not kNone.
  int32_t value(uint32_t node) const { return nodes_[node].value; }

 private:
  struct Node {
    int32_t value = -1;
    uint32_t first_child = 0;  // they lie side by side, in the order of their labels
    uint16_t num_children = 0;
    unsigned char label = 0;
  };

  uint32_t find_child(const Node& node, unsigned char label) const;

  std::vector<Node> nodes_;
  std::array<uint32_t, 256> first_{};  // the children of the root
};

}  // namespace tgi
