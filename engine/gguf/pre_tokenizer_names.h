// The other direction of pre_tokenizers.h: the name under which GGUF files have the pre-tokenizer
// of a tokenizer.json.
#pragma once

#include <string>

#include "base/json.h"

namespace tgi::gguf {

// tree: tokenizer.json without its vocabulary, of byte-level BPE. The first of the names whose cuts
// are the same on the probes (tokenizer_probes.h), and that agree about normalising and merging.
// Throws kUnsupported when there is none.
std::string pre_tokenizer_name(const Json& tree);

}  // namespace tgi::gguf
