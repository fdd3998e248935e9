// The alphabet of byte-level BPE: each of the 256 bytes stands as a printable character, so that
// vocabularies are text. The table is GPT-2's (github.com/openai/gpt-2, src/encoder.py).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace tgi {

// The character of each byte, as UTF-8.
const std::array<std::string, 256>& byte_level_alphabet();

// The bytes of the character of a byte.
inline size_t byte_level_size(char byte) {
  return byte_level_alphabet()[static_cast<unsigned char>(byte)].size();
}

std::string to_byte_level(std::string_view bytes);

// The bytes that `token` stands for, or nothing when a character is not of the alphabet. REQUIRES:
// valid UTF-8.
std::optional<std::string> from_byte_level(std::string_view token);

}  // namespace tgi
