// Which part of a text each of its tokens stands for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"

namespace tgi {

struct TextSpan {  // in Unicode scalar values
  int64_t start = 0;
  int64_t stop = 0;
};

// One span per id, where `ids` = tokenizer.encode(text, ...) and `text` is valid UTF-8. A token
// that was added has (0, 0); tokens that share a character all have the whole of it, as in the
// Hugging Face library. Where a normaliser changed the text (case, composition) a span is a guess:
// as many characters as the token has. Where a format puts a space in front of a text that begins
// with one, spans of the spaces may be off by one.
std::vector<TextSpan> token_spans(const Tokenizer& tokenizer,
                                  std::string_view text,
                                  std::span<const int32_t> ids);

}  // namespace tgi
