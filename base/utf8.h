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

// Characters (Unicode scalar values) of valid UTF-8.
inline int64_t count_utf8_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// True when `tail` could still become one valid character by more bytes: 0 < size < 4 and a proper
// prefix of one.
bool is_incomplete_utf8(std::string_view tail);

// Moves text from `raw` to the end of `out`: whole characters as they are, and one U+FFFD for each
// maximal part of a character that can't become one (as the Unicode standard recommends and
// Python's errors="replace" does). A tail that more bytes could still complete stays in `raw`
// unless at_end.
void drain_utf8(std::string& raw, bool at_end, std::string& out);

}  // namespace tgi
