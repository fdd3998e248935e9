// The tokenizer, the chat template and the tokens that end a text, out of the metadata of a GGUF
// file.
#pragma once

#include <map>
#include <string>

#include "engine/weights/ggml/gguf_file.h"

namespace tgi::gguf {

// Texts by the name that a Hugging Face folder has them under: tokenizer.json or tokenizer.model,
// tokenizer_config.json, generation_config.json. Throws kInvalidArgument for metadata that makes no
// sense, kUnsupported naming a kind of tokenizer, a pre-tokenizer or a key that this build does not
// know.
std::map<std::string, std::string> tokenizer_files(const GgufMetadata& metadata);

}  // namespace tgi::gguf
