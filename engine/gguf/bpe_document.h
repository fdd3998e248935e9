// The tokenizer.json of a GGUF file whose tokenizer merges pairs in the order of a list: kinds gpt2
// and gemma4.
#pragma once

#include <string>

#include "engine/gguf/gguf_vocabulary.h"
#include "engine/gguf/pre_tokenizers.h"
#include "engine/gguf/special_ids.h"

namespace tgi::gguf {

// What stands around a text: [bos] text [eos], and of two [bos] first [eos] [separator] second
// [eos].
struct AddedEnds {
  bool bos = false;
  bool eos = false;
  bool separator = false;
};

// Throws kInvalidArgument for a token to be added that the file does not name.
std::string bpe_document(const GgufVocabulary& vocabulary,
                         const GgufMetadata& metadata,
                         const PreTokenizer& pre,
                         const SpecialIds& ids,
                         const AddedEnds& ends);

}  // namespace tgi::gguf
