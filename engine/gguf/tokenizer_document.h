// Parts of the text of a tokenizer.json that all kinds of tokenizers have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/gguf/gguf_vocabulary.h"
#include "engine/gguf/special_ids.h"

namespace tgi::gguf {

constexpr std::string_view kLowerBlock = "\u2581";  // what stands for a space

// What stands around a text: [bos] text [eos], and of two [bos] first [eos] [separator] second
// [eos].
struct AddedEnds {
  bool bos = false;
  bool eos = false;
  bool separator = false;
};

// The member "post_processor" that adds them. Throws kInvalidArgument when the file does not name
// one of them.
Json ends_document(const GgufVocabulary& vocabulary, const SpecialIds& ids, const AddedEnds& ends);

// The list "added_tokens": control tokens, which are special ones, and user-defined ones.
Json added_tokens(const GgufVocabulary& vocabulary, const GgufMetadata& metadata);

// {"a": 0, ...} of these, in the order of their ids.
std::string vocabulary_object(const std::vector<std::string>& tokens);

// The whole document. The vocabulary and the merges ("" for none) come as text: a tree of a hundred
// thousand strings takes longer to build than to read.
std::string tokenizer_document(Json members,
                               const Json& model,
                               const std::string& vocabulary,
                               const std::string& merges);

}  // namespace tgi::gguf
