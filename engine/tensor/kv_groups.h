// The layers of a model in groups. A block of the KV cache holds block_size tokens of as many
// layers as a group has; each sequence has a list of blocks for each group, and all groups take
// them from one pool. Groups of layers with a window keep only the blocks that a token to come
// still sees.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tgi {

// Attention reads keys and values in tiles of at most so many tokens, whose boundaries are
// multiples of it.
inline constexpr int32_t kKvTile = 64;

// The keys and values of a token in one layer: num_kv_heads of head_dim numbers each.
struct KvHeads {
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t value_dim = 0;  // of a value, where it is not as long as its key; 0: head_dim
  // There are no values, or keys hold them. Such a key is the same for all heads, and every rank
  // has all of it.
  bool keys_only = false;
  // Of so many tokens that follow each other one has a row, which is kept: keys only, no codes.
  int32_t tokens_per_row = 1;

  int32_t value_cols() const { return keys_only ? 0 : value_dim > 0 ? value_dim : head_dim; }
  int64_t key_numbers() const { return int64_t{num_kv_heads} * head_dim; }
  int64_t value_numbers() const { return int64_t{num_kv_heads} * value_cols(); }
  int64_t rows_of_block(int32_t block_size) const {
    return (int64_t{block_size} + tokens_per_row - 1) / tokens_per_row;
  }

  bool operator==(const KvHeads&) const = default;
};

// Where a layer has its keys and values.
struct KvPlace {
  int32_t group = 0;  // whose blocks hold them
  int32_t layer = 0;  // of the group

  bool operator==(const KvPlace&) const = default;
};

// The groups that keep everything come first.
struct KvGroups {
  int32_t num_full = 1;
  int32_t num_windowed = 0;
  int32_t window = 0;  // tokens: the longest of those groups

  int32_t num_groups() const { return num_full + num_windowed; }
  bool is_windowed(int32_t group) const { return group >= num_full; }

  // The first token that windowed groups need when the next one to be computed is `position`.
  int64_t first_needed(int64_t position) const {
    return std::max<int64_t>(position - window + 1, 0) / kKvTile * kKvTile;
  }

  // Blocks of all groups for a context of `num_tokens`, computed `chunk` tokens at a time.
  int64_t blocks_of_context(int64_t num_tokens, int64_t chunk, int32_t block_size) const {
    const auto blocks_for = [block_size](int64_t tokens) {
      return (tokens + block_size - 1) / block_size;
    };
    const int64_t all = blocks_for(num_tokens);
    const int64_t seen = blocks_for(int64_t{window} + kKvTile + chunk) + 1;
    return num_full * all + num_windowed * std::min(all, seen);
  }

  bool operator==(const KvGroups&) const = default;
};

}  // namespace tgi
