// A file of ranks as tiktoken reads it (github.com/openai/tiktoken, load.py): lines of a token's
// bytes in base64 and its rank. tokenizer.model of Llama 3 and GLM 4, tiktoken.model of Kimi, and
// NAME.tiktoken as Qwen's first models have it. The file says neither where texts are cut nor which
// tokens are special: the class of the folder's tokenizer does, and the list of added tokens in its
// tokenizer_config.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/files/file_source.h"
#include "engine/text/tokenizer/tokenizer_config.h"
#include "engine/text/tokenizer/tokenizer_json.h"

namespace tgi {

// The name of the folder's file of ranks, or nothing: a tokenizer.model may also be one of
// SentencePiece. Throws kInvalidArgument when there are several of them.
std::optional<std::string> find_tiktoken_file(const FileSource& files);

// text: of that file. Special tokens in texts are found, as in a tokenizer.json. Throws
// kInvalidArgument with the line that is malformed; kUnsupported when the class is not known to
// have such files, or the special tokens are known neither from the folder nor from the class.
TokenizerJson read_tiktoken(std::string_view text,
                            const TokenizerConfig& config,
                            const TiktokenConfig& more);

}  // namespace tgi
