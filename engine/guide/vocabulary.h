// The tokens of a model as byte strings in a trie, as masks are made from it. Made once per model,
// shared by all matchers; immutable but for a cache that is locked inside.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tgi {
class Tokenizer;
}

namespace tgi::guide {

struct LoopMask;
struct StateMask;

inline bool begins_character(uint64_t byte) {  // of UTF-8
  return (byte & 0xC0) != 0x80;
}

constexpr uint64_t lead_bit(uint8_t byte) {  // of the first byte of a character of several
  return uint64_t{1} << (byte & 0x3F);
}

// Nodes in the order of a walk that goes down first: the children of a node follow it, up to its
// `end`. Node 0 is the root, which may have several children of one byte: tokens of different kinds
// share no paths (vocabulary.cc).
struct TokenTrie {
  // In one place what a walk asks of a node: it comes by few of those that are near each other.
  // What the paths below a node are made of is for walks that need not go down to know: a state
  // that comes back to itself with every character of them allows them all.
  struct Node {
    std::array<uint64_t, 2> ascii{};  // below it: a bit for each byte
    uint64_t leads =
        0;  // the same of longer characters, whole or begun, by lead_bit() of the first
    int32_t end = 0;
    int32_t token_begin = 0;  // in token_ids; those of the node end where the next one's begin
    uint16_t depth = 0;
    uint16_t height = 0;  // how many bytes the longest path below it has
    uint8_t byte = 0;
    bool is_broken = false;  // below it is no UTF-8, or it is itself inside of a character
  };
  static_assert(sizeof(Node) == 40);
  std::vector<Node> nodes;  // and one more, for the end of the last one's tokens
  std::vector<int32_t> token_ids;
  // The children of all nodes, in the order of those and of their bytes, with their bytes beside
  // them: those of a node begin at first_child of it and end at first_child of the next. A walk
  // passes most of them by, and need not look at them for that.
  std::vector<int32_t> first_child;
  std::vector<uint8_t> child_bytes;
  std::vector<int32_t> children;
  // How many characters begin on the way to a node, and in each of token_ids.
  std::vector<uint16_t> node_characters;
  std::vector<uint16_t> token_characters;
  // All nodes by their byte: those of byte b are by_byte[by_byte_begin[b]] and so on, in order.
  std::vector<int32_t> by_byte_begin;
  std::vector<int32_t> by_byte;

  int32_t size() const { return static_cast<int32_t>(nodes.size()) - 1; }
  const Node& at(int32_t node) const { return nodes[static_cast<size_t>(node)]; }
  int32_t end_of(int32_t node) const { return at(node).end; }
  std::span<const int32_t> tokens_at(int32_t node) const {
    const auto begin = static_cast<size_t>(at(node).token_begin);
    return std::span(token_ids).subspan(begin,
                                        static_cast<size_t>(at(node + 1).token_begin) - begin);
  }
  // Those that end below the node are, in token_ids, the ones from first to second.
  std::pair<int32_t, int32_t> tokens_below(int32_t node) const {
    return {at(node + 1).token_begin, at(end_of(node)).token_begin};
  }
  std::span<const int32_t> nodes_of(uint8_t b) const {
    const auto begin = static_cast<size_t>(by_byte_begin[b]);
    return std::span(by_byte).subspan(begin,
                                      static_cast<size_t>(by_byte_begin[b + size_t{1}]) - begin);
  }
  void describe();  // fills all that is found from the nodes
};

class Vocabulary {
 public:
  // What every id stands for in the middle of a text; empty: never a part of a text (control
  // tokens, ids without a meaning).
  struct Token {
    std::string bytes;
    std::string special_name;  // by which grammars may call it; empty: none
  };
  Vocabulary(std::vector<Token> tokens, std::vector<int32_t> end_token_ids);
  ~Vocabulary();

  // Ids from the tokenizer's size up to vocab_size (that of the logits) have no meaning. Special
  // tokens are no part of a text: grammars call them by name. So they can other tokens that are
  // written <...> or [...].
  static std::shared_ptr<const Vocabulary> from(const Tokenizer& tokenizer,
                                                int32_t vocab_size,
                                                std::vector<int32_t> end_token_ids);

  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  std::string_view bytes(int32_t id) const { return tokens_[static_cast<size_t>(id)].bytes; }
  std::string_view special_name(int32_t id) const {
    return tokens_[static_cast<size_t>(id)].special_name;
  }
  std::optional<int32_t> special_id(std::string_view name) const;
  std::span<const int32_t> end_token_ids() const { return end_token_ids_; }
  bool is_end_token(int32_t id) const;

  const TokenTrie& trie() const { return trie_; }
  std::span<const uint32_t> all_tokens() const { return all_tokens_; }  // a bit for each with bytes
  size_t longest_token() const { return longest_token_; }
  // The longest token that the text begins with, in bytes and by id; 0 bytes: there is none.
  std::pair<size_t, int32_t> longest_prefix(std::string_view text) const;
  // Some token begins with the text and goes on.
  bool has_longer(std::string_view text) const;

  // Masks of states that mean the same in every grammar, by their digest. Bounded: the whole is
  // dropped when it is full.
  using Digest = std::array<uint64_t, 2>;
  std::shared_ptr<const StateMask> find_mask(const Digest& state) const;
  void keep_mask(const Digest& state, std::shared_ptr<const StateMask> mask) const;
  std::shared_ptr<const LoopMask> find_loop(const Digest& loop) const;
  void keep_loop(const Digest& loop, std::shared_ptr<const LoopMask> mask) const;

 private:
  void build_trie();
  // Calls visit(node, depth) for each node on the paths from the root that the text is on.
  template <typename Visit>
  void follow(std::string_view text, Visit visit) const;

  struct DigestHash {
    size_t operator()(const Digest& digest) const { return digest[0]; }
  };
  struct Kept {
    std::shared_ptr<const StateMask> state;
    std::shared_ptr<const LoopMask> loop;
  };
  Kept find(const Digest& digest) const;
  void keep(const Digest& digest, const Kept& kept, size_t num_bytes) const;

  std::vector<Token> tokens_;
  std::vector<int32_t> end_token_ids_;
  std::unordered_map<std::string, int32_t> special_ids_;
  TokenTrie trie_;
  size_t longest_token_ = 0;
  std::vector<uint32_t> all_tokens_;

  mutable std::mutex mutex_;
  mutable std::unordered_map<Digest, Kept, DigestHash> kept_;  // under mutex_
  mutable size_t kept_bytes_ = 0;                              // under mutex_
};

}  // namespace tgi::guide
