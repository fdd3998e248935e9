// UTF-8 as defined by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace tgi {

// The number of leading bytes of `text` that form whole, valid characters.
size_t valid_utf8_prefix(std::string_view text);

inline bool is_valid_utf8(std::string_view text) {
  return valid_utf8_prefix(text) == text.size();
}

// True when `tail` could still become one valid character by more bytes: 0 < size < 4 and a proper
// prefix of one.
bool is_incomplete_utf8(std::string_view tail);

}  // namespace tgi
