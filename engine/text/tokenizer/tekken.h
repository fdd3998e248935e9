// tekken.json, the tokenizer of Mistral's newer models (mistral-common's Tekkenizer,
// github.com/mistralai/mistral-common): ids begin with the special tokens, then come the first
// ranks of the list of bytes, as many as default_vocab_size leaves room for.
//
// Texts get "<s>" before them, and special tokens in them are found, as in the tokenizer.json of
// the same models: that is what chat templates write. mistral-common takes a special token in a
// text for plain text, and puts the ids of a chat together itself.
#pragma once

#include <string_view>

#include "engine/text/tokenizer/tokenizer_config.h"
#include "engine/text/tokenizer/tokenizer_json.h"

namespace tgi {

// add_bos_token and add_eos_token of `config` say otherwise what is put around a text. What the
// file says of images and audio isn't looked at. Throws kInvalidArgument or kUnsupported with the
// path of what is wrong.
TokenizerJson read_tekken(std::string_view text, const TokenizerConfig& config);

}  // namespace tgi
