// The tokenizer.json of a GGUF file whose tokenizer finds the most likely pieces: kind t5.
#pragma once

#include <string>

#include "engine/gguf/gguf_vocabulary.h"
#include "engine/gguf/special_ids.h"
#include "engine/gguf/tokenizer_document.h"

namespace tgi::gguf {

// Throws kInvalidArgument for a token to be added that the file does not name, or a normalizer that
// is no list of bytes.
std::string unigram_document(const GgufVocabulary& vocabulary,
                             const GgufMetadata& metadata,
                             const SpecialIds& ids,
                             const AddedEnds& ends);

}  // namespace tgi::gguf
