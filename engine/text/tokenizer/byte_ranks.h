// Vocabularies of ranks, as tiktoken (github.com/openai/tiktoken) and mistral-common have them:
// each token is some bytes, and its id says its rank. A piece that is a token is that token; in
// others the two neighbours join that make the token of the lowest rank, the leftmost first, as
// long as any do. So there is no list of merges: however a token is cut into two tokens, they join
// to it.
//
// They become a TokenizerJson with is_ranked, whose tokens are spelled as byte_level.h does, as
// transformers' converters spell them. Unlike in a tokenizer.json, added tokens have the ids that
// the list of them says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/text/tokenizer/added_tokens.h"
#include "engine/text/tokenizer/tokenizer_json.h"
#include "engine/text/tokenizer/vocabulary.h"

namespace tgi {

class ByteRanks {
 public:
  static constexpr size_t kMostBytes = 4096;  // of a token: the ways to cut it cost their square

  // Throws kInvalidArgument when `bytes` are none, too many or there already, or when another token
  // has the id or none can have it.
  void add(std::string_view bytes, int64_t id);

  int64_t highest_id() const { return vocabulary_.highest_id(); }  // -1: none yet

  // The vocabulary, indexed. Throws kInvalidArgument when one of the 256 bytes is no token: no text
  // with it could be encoded.
  Vocabulary finish();

 private:
  Vocabulary vocabulary_;
  std::vector<bool> is_taken_;  // by id
};

// Ids of a token and of the two that it can be cut into.
struct TokenCut {
  int32_t left, right, whole;
};

// All of them, those of the vocabulary's first token first. REQUIRES: indexed, spelled as
// byte_level.h does.
std::vector<TokenCut> cuts_of_tokens(const Vocabulary& vocabulary);

// What stands around a vocabulary of ranks.
struct RankedSpec {
  std::string pattern;            // texts are cut at what it finds, a regular expression
  bool normalizes = false;        // texts to NFC first
  std::vector<AddedToken> added;  // found in every text, with their ids
  // Contents of added tokens that are put around a text; of a pair, around both.
  std::vector<std::string> before{}, after{};
  bool only_first = false;  // of a pair, around the first alone
};

// Throws kInvalidArgument when an added token is empty or there twice, when its id belongs to
// another token, or when one that is put around a text is not among them.
TokenizerJson make_ranked(Vocabulary vocabulary, const RankedSpec& spec);

// The merges by which a tokenizer.json says nearly the same, as transformers' converters make them
// of ranks: of several ways to make one token, not the leftmost comes first but that whose parts
// have the lowest ranks.
std::vector<std::pair<std::string, std::string>> merges_of_ranks(const Vocabulary& vocabulary);

}  // namespace tgi
