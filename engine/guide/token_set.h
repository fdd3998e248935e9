// Tokens that a grammar asks for as such, by name or by number, as GBNF and Lark write them:
//   <|tool_call|>   the token that the vocabulary spells so
//   <[7]>  <[7,10-12]>   by number
//   <[^7]>  <[*]>   any but these, any: those that end an answer are not among them
// Sources: llama.cpp's description of GBNF, llguidance's of its syntax.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/guide/source_text.h"
#include "engine/guide/vocabulary.h"

namespace tgi::guide {

struct TokenSet {
  std::string name{};                                  // empty: by number
  std::vector<std::pair<int32_t, int32_t>> numbers{};  // first and last, of each range
  bool is_negated = false;
  friend bool operator==(const TokenSet&, const TokenSet&) = default;
};

// REQUIRES: the source is at a '<'. Throws kInvalidArgument with the place.
TokenSet parse_token_set(SourceText& source);

// The same in one vocabulary; never empty.
class TokenIds {
 public:
  // Throws kInvalidArgument when the vocabulary has no such token.
  static TokenIds of(const TokenSet& set, const Vocabulary& vocabulary);

  bool holds(int32_t id) const {
    if (bits_.empty()) return id == first_;
    const auto at = static_cast<size_t>(id);
    return (bits_[at / 32] >> (at % 32) & 1U) != 0;
  }
  int32_t first() const { return first_; }
  void add_to(std::span<uint32_t> mask) const;

 private:
  friend std::vector<TokenIds> disjoint_parts(std::span<const TokenIds* const> sets);

  int32_t first_ = -1;
  std::vector<uint32_t> bits_{};  // empty: the first is the only one
};

// Parts that have no token in common, and of which each of the sets is made.
std::vector<TokenIds> disjoint_parts(std::span<const TokenIds* const> sets);

}  // namespace tgi::guide
