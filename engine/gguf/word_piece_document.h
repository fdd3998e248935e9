// The tokenizer.json of a GGUF file whose tokenizer is BERT's.
#pragma once

#include <string>

#include "engine/gguf/gguf_vocabulary.h"
#include "engine/gguf/special_ids.h"

namespace tgi::gguf {

// Throws kInvalidArgument when the file lacks a token that all of BERT's have.
std::string word_piece_document(const GgufVocabulary& vocabulary,
                                const GgufMetadata& metadata,
                                const SpecialIds& ids);

}  // namespace tgi::gguf
