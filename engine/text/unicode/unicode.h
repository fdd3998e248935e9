// Characters and normal forms as the `tokenizers` library sees them, built on utf8proc. Where that
// library's Unicode version differs (unicode_tables.h), the library's view wins: token ids depend
// on it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tgi {

// The character that starts at `offset`, which moves past it. REQUIRES: valid UTF-8 and `offset`
// on a character's first byte.
char32_t next_character(std::string_view text, size_t& offset);

// The size in bytes of the character whose first byte is `lead`. REQUIRES: a first byte.
inline size_t utf8_size(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

void append_utf8(char32_t character, std::string& out);

// Each maximal part that can't become a character turns into U+FFFD, as with Python's
// errors="replace".
std::string replace_invalid_utf8(std::string_view text);

bool is_white_space(char32_t character);
bool is_numeric(char32_t character);      // categories Nd, Nl, No
bool is_punctuation(char32_t character);  // categories P, and all of ASCII's signs
bool is_combining_mark(char32_t character);
void append_lowercase(char32_t character, std::string& out);

// True when `text` holds a character that is newer than Unicode 14.
bool has_newer_characters(std::string_view text);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
std::string normalize(std::string_view text, NormalForm form);

}  // namespace tgi
