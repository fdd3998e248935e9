// A tokenizer of GGUF's kinds llama and t5 as the tokenizer.model it was made from.
#pragma once

#include <string>

#include "engine/gguf/gguf_vocabulary.h"

namespace tgi::gguf {

// The serialised ModelProto. Source: sentencepiece_model.proto of github.com/google/sentencepiece.
std::string sentencepiece_proto(const GgufVocabulary& vocabulary,
                                const GgufMetadata& metadata,
                                bool is_unigram);

}  // namespace tgi::gguf
