#include "engine/text/tokenizer/byte_level.h"

#include <cstddef>

#include "base/utf8.h"

namespace tgi {
namespace {

constexpr size_t kAlphabetEnd = 0x144;  // one past the highest character

// These bytes are printable in Latin-1 and stand for themselves; the others follow U+0100.
constexpr bool stands_for_itself(size_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

std::array<std::string, 256> make_alphabet() {
  std::array<std::string, 256> alphabet;
  char32_t substitute = 0x100;
  for (size_t byte = 0; byte < 256; ++byte) {
    append_utf8(stands_for_itself(byte) ? static_cast<char32_t>(byte) : substitute++,
                alphabet[byte]);
  }
  return alphabet;
}

// The byte of each character below kAlphabetEnd, -1 for none.
std::array<int, kAlphabetEnd> make_inverse() {
  std::array<int, kAlphabetEnd> inverse;
  inverse.fill(-1);
  for (size_t byte = 0; byte < 256; ++byte) {
    size_t offset = 0;
    inverse[next_character(byte_level_alphabet()[byte], offset)] = static_cast<int>(byte);
  }
  return inverse;
}

}  // namespace

const std::array<std::string, 256>& byte_level_alphabet() {
  static const std::array<std::string, 256> alphabet = make_alphabet();
  return alphabet;
}

std::string to_byte_level(std::string_view bytes) {
  const std::array<std::string, 256>& alphabet = byte_level_alphabet();
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 2);
  for (const char byte : bytes) text += alphabet[static_cast<unsigned char>(byte)];
  return text;
}

std::optional<std::string> from_byte_level(std::string_view token) {
  static const std::array<int, kAlphabetEnd> inverse = make_inverse();
  std::string bytes;
  bytes.reserve(token.size());
  size_t offset = 0;
  while (offset < token.size()) {
    const char32_t character = next_character(token, offset);
    if (character >= kAlphabetEnd || inverse[character] < 0) return std::nullopt;
    bytes += static_cast<char>(inverse[character]);
  }
  return bytes;
}

}  // namespace tgi
