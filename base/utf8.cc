#include "base/utf8.h"

#include <cstdint>

namespace tgi {
namespace {

struct Lead {
  size_t length;      // bytes of the character; 0: not a lead byte
  unsigned char low;  // allowed range of the second byte
  unsigned char high;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// How many bytes of `text` agree with one character that starts at its first byte; `whole` tells if
// it is complete.
size_t match_character(std::string_view text, bool& whole) {
  whole = false;
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  if (lead.length == 0) return 0;
  size_t matched = 1;
  while (matched < lead.length && matched < text.size()) {
    const auto byte = static_cast<unsigned char>(text[matched]);
    const unsigned char low = matched == 1 ? lead.low : 0x80;
    const unsigned char high = matched == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) return matched;
    ++matched;
  }
  whole = matched == lead.length;
  return matched;
}

}  // namespace

size_t valid_utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    bool whole = false;
    const size_t matched = match_character(text.substr(at), whole);
    if (!whole) break;
    at += matched;
  }
  return at;
}

bool is_incomplete_utf8(std::string_view tail) {
  if (tail.empty()) return false;
  bool whole = false;
  return match_character(tail, whole) == tail.size() && !whole;
}

void drain_utf8(std::string& raw, bool at_end, std::string& out) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string_view rest = raw;
  while (!rest.empty()) {
    const size_t valid = valid_utf8_prefix(rest);
    out += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty() || (!at_end && is_incomplete_utf8(rest))) break;
    bool whole = false;
    const size_t matched = match_character(rest, whole);
    out += kReplacement;
    rest.remove_prefix(matched == 0 ? 1 : matched);
  }
  raw.erase(0, raw.size() - rest.size());
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string raw(text);
  std::string out;
  out.reserve(text.size());
  drain_utf8(raw, true, out);
  return out;
}

void append_utf8(char32_t character, std::string& out) {
  const auto continuation = [&](int shift) {
    return static_cast<char>(0x80 | (character >> shift & 0x3F));
  };
  if (character < 0x80) {
    out += static_cast<char>(character);
  } else if (character < 0x800) {
    out += {static_cast<char>(0xC0 | character >> 6), continuation(0)};
  } else if (character < 0x10000) {
    out += {static_cast<char>(0xE0 | character >> 12), continuation(6), continuation(0)};
  } else if (character < 0x110000) {
    out += {static_cast<char>(0xF0 | character >> 18), continuation(12), continuation(6),
            continuation(0)};
  }
}

}  // namespace tgi
