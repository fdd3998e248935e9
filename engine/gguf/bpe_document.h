// The tokenizer.json of a GGUF file whose tokenizer merges pairs in the order of a list: kinds gpt2
// and gemma4.
#pragma once

#include <string>

#include "base/json.h"
#include "engine/gguf/gguf_vocabulary.h"
#include "engine/gguf/pre_tokenizers.h"
#include "engine/gguf/special_ids.h"
#include "engine/gguf/tokenizer_document.h"

namespace tgi::gguf {

// The "pre_tokenizer" of that document. REQUIRES: the alphabet is of bytes.
Json pre_tokenizer_document(const PreTokenizer& pre);

// Throws kInvalidArgument for a token to be added that the file does not name.
std::string bpe_document(const GgufVocabulary& vocabulary,
                         const GgufMetadata& metadata,
                         const PreTokenizer& pre,
                         const SpecialIds& ids,
                         const AddedEnds& ends);

}  // namespace tgi::gguf
