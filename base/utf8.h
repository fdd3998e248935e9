// UTF-8 as defined by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tgi {

// The number of leading bytes of `text` that form whole, valid characters.
size_t valid_utf8_prefix(std::string_view text);

inline bool is_valid_utf8(std::string_view text) {
  return valid_utf8_prefix(text) == text.size();
}

// True for the first byte of a character of valid UTF-8, false for those that continue it.
inline bool starts_character(char byte) {
  return (byte & 0xC0) != 0x80;
}

// Where the character that the byte at `at` belongs to begins. REQUIRES: at < text.size().
inline size_t character_begin(std::string_view text, size_t at) {
  while (at > 0 && !starts_character(text[at])) --at;
  return at;
}

// The size in bytes of the character whose first byte is `lead`. REQUIRES: a first byte.
inline size_t utf8_size(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// The same of the character that begins at `at`; less where the text ends within it. REQUIRES: at <
// text.size().
inline size_t character_size(std::string_view text, size_t at) {
  return std::min(utf8_size(text[at]), text.size() - at);
}

// The character that begins at `offset`, which moves past it, or to the end of a text that ends
// within it. REQUIRES: valid UTF-8 up to there and `offset` on a character's first byte.
inline char32_t next_character(std::string_view text, size_t& offset) {
  const auto byte = [&](size_t at) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[offset + at]));
  };
  const char32_t lead = byte(0);
  const size_t size = character_size(text, offset);
  char32_t character = lead;
  if (size == 2) character = (lead & 0x1F) << 6 | (byte(1) & 0x3F);
  if (size == 3) character = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  if (size == 4) {
    character =
        (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
  offset += size;
  return character;
}

// Nothing for what is above U+10FFFF.
void append_utf8(char32_t character, std::string& out);

// Characters (Unicode scalar values) of valid UTF-8.
inline int64_t count_utf8_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return starts_character(c); });
}

// True when `tail` could still become one valid character by more bytes: 0 < size < 4 and a proper
// prefix of one.
bool is_incomplete_utf8(std::string_view tail);

// Moves text from `raw` to the end of `out`: whole characters as they are, and one U+FFFD for each
// maximal part of a character that can't become one (as the Unicode standard recommends and
// Python's errors="replace" does). A tail that more bytes could still complete stays in `raw`
// unless at_end.
void drain_utf8(std::string& raw, bool at_end, std::string& out);

// The same of a whole text.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace tgi
