// Text in which special tokens stand between two bytes that no UTF-8 has, so that a mark that is a
// special token is never confused with the same letters written out.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"

namespace tgi::dialect {

inline constexpr char kTokenBorder = '\xFF';

// Whether the vocabulary has a special token of this spelling.
using IsSpecialToken = std::function<bool(std::string_view name)>;
IsSpecialToken special_tokens_of(const Tokenizer& tokenizer);  // which must outlive it

struct MarkPiece {
  std::string text;
  bool is_special = false;
};

// A mark taken apart into special tokens and the text between them.
std::vector<MarkPiece> pieces_of(std::string_view mark, const IsSpecialToken& is_special);

// As it stands in marked text.
std::string marked(std::string_view mark, const IsSpecialToken& is_special);
std::string marked_token(std::string_view name);

// With the special tokens spelled out.
std::string unmarked(std::string_view text);

// How many bytes at the end of `text` are the beginning of `mark`, but not all of it.
size_t length_of_begun(std::string_view text, std::string_view mark);

}  // namespace tgi::dialect
