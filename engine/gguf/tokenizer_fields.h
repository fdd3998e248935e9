// The other direction of tokenizer_files.h: the tokenizer, the special tokens and the chat template
// of a Hugging Face folder as metadata of a GGUF file.
#pragma once

#include <cstdint>
#include <vector>

#include "base/files/file_source.h"
#include "engine/text/tokenizer.h"
#include "engine/weights/ggml/gguf_fields.h"

namespace tgi::gguf {

struct TokenizerSource {
  const FileSource& files;
  const Tokenizer& tokenizer;      // of the files
  int64_t vocab_size = 0;          // rows of the model's embedding
  std::vector<int32_t> end_ids{};  // that end an answer, the usual one first
};

// Puts "tokenizer.*". Throws kUnsupported saying what no GGUF file can say, and what of it differs:
// what was put is read again, and has to give the same ids for texts of many kinds.
void put_tokenizer(const TokenizerSource& source, GgufFields& fields);

}  // namespace tgi::gguf
