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

// A tokenizer that keeps track of where its tokens come from, through whatever changes a text
// before it is cut: it says the same as the offsets of the Hugging Face library.
class SpanTokenizer : public Tokenizer {
 public:
  // One span for each id of encode(text, add_special); (0, 0) for one that was added. REQUIRES:
  // valid UTF-8.
  virtual std::vector<TextSpan> spans(std::string_view text, bool add_special) const = 0;
};

// One span per id, where `ids` = tokenizer.encode(text, add_special) and `text` is valid UTF-8. A
// token that was added has (0, 0); tokens that share a character all have the whole of it. For a
// tokenizer that is no SpanTokenizer (a tokenizer.model) they are found by laying the tokens along
// the text: where a normaliser changed it (case, composition) a span is a guess, as many characters
// as the token has, and where a format puts a space in front of a text that begins with one, spans
// of the spaces may be off by one.
std::vector<TextSpan> token_spans(const Tokenizer& tokenizer,
                                  std::string_view text,
                                  std::span<const int32_t> ids,
                                  bool add_special);

}  // namespace tgi
