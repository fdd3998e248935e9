// A folder of byte-level BPE from before tokenizer.json: vocab.json maps tokens to ids, each line
// of merges.txt is a pair, best first, and tokenizer_config.json names the class that cuts texts.
#pragma once

#include "base/files/file_source.h"
#include "engine/text/tokenizer/tokenizer_config.h"
#include "engine/text/tokenizer/tokenizer_json.h"

namespace tgi {

// The tokenizer.json that transformers' converters make of them. Special tokens that the vocabulary
// does not have are left out. Throws kInvalidArgument saying what of which file is malformed;
// kUnsupported when the class is not known to have such files.
TokenizerJson read_vocab_merges(const FileSource& files,
                                const TokenizerConfig& config,
                                const VocabMergesConfig& more);

}  // namespace tgi
