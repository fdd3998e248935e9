// SentencePiece's own file of a GGUF file whose tokenizer merges the pieces with the best score
// first: kind llama.
#pragma once

#include <string>

#include "engine/gguf/gguf_vocabulary.h"

namespace tgi::gguf {

// A serialised sentencepiece.ModelProto (github.com/google/sentencepiece,
// src/sentencepiece_model.proto).
std::string sentencepiece_proto(const GgufVocabulary& vocabulary, const GgufMetadata& metadata);

}  // namespace tgi::gguf
