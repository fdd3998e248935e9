// The steps of a decoder that make text of tokens that spell bytes.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "engine/text/tokenizer/decoder_steps.h"

namespace tgi {

// A run of byte tokens becomes one text, or one U+FFFD for each when it is none.
std::unique_ptr<DecoderStep> make_byte_fallback_step(const DecoderState& state);

// Characters are bytes, and what is none of them stands for itself. Makes one text.
std::unique_ptr<DecoderStep> make_byte_level_step();

}  // namespace tgi
