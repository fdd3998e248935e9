// A BERT folder from before tokenizer.json: vocab.txt has a token on each line, its number is the
// id, and tokenizer_config.json says the rest.
#pragma once

#include <string_view>

#include "engine/text/tokenizer/tokenizer_config.h"
#include "engine/text/tokenizer/tokenizer_json.h"

namespace tgi {

// The tokenizer.json that transformers 5 makes of the two. Special tokens that are not in the
// vocabulary are left out (transformers gives them new ids, for which the model has no embedding),
// but for the unknown one and the two at the ends: without these it throws kInvalidArgument, as it
// does for what is not UTF-8 and for a file without tokens. kUnsupported: tokenizer_class is of
// another kind.
TokenizerJson read_vocab_txt(std::string_view text,
                             const TokenizerConfig& config,
                             const VocabTxtConfig& more);

}  // namespace tgi
