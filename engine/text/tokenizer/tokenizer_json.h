// Reads tokenizer.json without holding its vocabulary and merges as a JSON tree: they are most of
// the file, and go straight into the tables that the model is made of.
#pragma once

#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/text/tokenizer/bpe_model.h"
#include "engine/text/tokenizer/unigram_model.h"
#include "engine/text/tokenizer/vocabulary.h"

namespace tgi {

struct TokenizerJson {
  Json tree;                        // everything but what stands in the members below
  Vocabulary vocabulary;            // model.vocab where it is an object: {token: id}; indexed
  std::vector<ScoredPiece> pieces;  // model.vocab where it is an array: [[piece, score]]
  std::vector<TextPair> merges;     // model.merges
  bool has_vocab = false;           // model.vocab is an object
  bool has_pieces = false;          // model.vocab is an array
  bool has_merges = false;          // model.merges is an array
  bool is_ranked = false;           // not of a tokenizer.json, but as byte_ranks.h says
};

// Throws kInvalidArgument with the byte offset or the path of what is malformed.
TokenizerJson read_tokenizer_json(std::string_view text);

}  // namespace tgi
