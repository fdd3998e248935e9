// Reads tokenizer.json without holding its vocabulary and merges as a JSON tree: they are most of
// the file, and go straight into the tables that the model is made of.
#pragma once

#include <string_view>

#include "base/json.h"
#include "engine/text/tokenizer/bpe_model.h"

namespace tgi {

struct TokenizerJson {
  Json tree;                // everything but model.vocab and model.merges, where these are a BPE's
  BpeSpec spec;             // filled: vocabulary, merges
  bool has_vocab = false;   // model.vocab is an object
  bool has_merges = false;  // model.merges is an array
};

// Throws kInvalidArgument with the byte offset or the path of what is malformed.
TokenizerJson read_tokenizer_json(std::string_view text);

}  // namespace tgi
