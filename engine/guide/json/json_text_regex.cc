#include "engine/guide/json/json_text_regex.h"

#include <array>
#include <utility>
#include <vector>

namespace tgi::guide {
namespace {

constexpr unsigned char kFirstPlain = 0x20;

constexpr std::array<std::pair<char, char>, 7> kShortEscapes = {
    {{'"', '"'}, {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}}};

char short_escape(unsigned char byte) {
  for (const auto& [character, letter] : kShortEscapes) {
    if (static_cast<unsigned char>(character) == byte) return letter;
  }
  return 0;
}

bool is_escaped(unsigned char byte) {
  return byte < kFirstPlain || byte == '"' || byte == '\\';
}

ByteSet byte_range(unsigned first, unsigned last) {
  ByteSet set;
  for (unsigned byte = first; byte <= last; ++byte) set.set(byte);
  return set;
}

}  // namespace

namespace {

std::string quoted(std::string_view text, char quote) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result(1, quote);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_quote = c == '"' || c == '\'';
    if (is_quote) {
      result += c == quote ? std::string{'\\', c} : std::string{c};
    } else if (!is_escaped(byte)) {
      result += c;
    } else if (const char letter = short_escape(byte); letter != 0) {
      result += '\\';
      result += letter;
    } else {
      result += "\\u00";
      result += kHex[byte >> 4];
      result += kHex[byte & 15];
    }
  }
  return result + quote;
}

}  // namespace

std::string quoted_json(std::string_view text) {
  return quoted(text, '"');
}

std::string quoted_python(std::string_view text) {
  return quoted(text, '\'');
}

Regex JsonTextRegex::any_character(char quote) {
  if (const auto known = any_character_.find(quote); known != any_character_.end()) {
    return known->second;
  }
  const auto mark = static_cast<char32_t>(quote);
  const CodePointRange plain_ranges[] = {
      {kFirstPlain, mark - 1}, {mark + 1, '['}, {']', 0xD7FF}, {0xE000, 0x10FFFF}};
  const Regex plain = pool_.code_points(plain_ranges);
  ByteSet letters;
  for (const char c : std::string_view("\\/bfnrt")) letters.set(static_cast<unsigned char>(c));
  letters.set(static_cast<unsigned char>(quote));
  const ByteSet digits = byte_range('0', '9');
  const ByteSet hex = digits | byte_range('a', 'f') | byte_range('A', 'F');
  ByteSet d;
  d.set('d').set('D');
  const ByteSet low_half = byte_range('0', '7');
  const ByteSet high_surrogate = byte_range('8', '9') | byte_range('a', 'b') | byte_range('A', 'B');
  const ByteSet low_surrogate = byte_range('c', 'f') | byte_range('C', 'F');
  const auto b = [&](const ByteSet& set) { return pool_.bytes(set); };
  const Regex two = pool_.concat({b(hex), b(hex)});
  const Regex unit = pool_.either(
      {pool_.concat({b(hex & ~d), b(hex), two}), pool_.concat({b(d), b(low_half), two})});
  const Regex pair = pool_.concat(
      {b(d), b(high_surrogate), two, pool_.literal("\\u"), b(d), b(low_surrogate), two});
  const Regex escape = pool_.concat(
      {pool_.literal("\\"),
       pool_.either({b(letters), pool_.concat({pool_.literal("u"), pool_.either({unit, pair})})})});
  return any_character_.emplace(quote, pool_.either({plain, escape})).first->second;
}

Regex JsonTextRegex::canonical(Regex language) {
  const ByteSet bytes = pool_.possible_bytes(language);
  bool may_need_escape = bytes['"'] || bytes['\\'];
  for (size_t byte = 0; byte < kFirstPlain; ++byte) may_need_escape |= bytes[byte];
  if (!may_need_escape) return language;
  if (!needs_escape_) {
    const CodePointRange special_ranges[] = {{0, kFirstPlain - 1}, {'"', '"'}, {'\\', '\\'}};
    needs_escape_ =
        pool_.concat({pool_.any_text(), pool_.code_points(special_ranges), pool_.any_text()});
  }
  if (pool_.is_empty(pool_.both(language, *needs_escape_))) return language;
  return pool_.json_escaped(language);
}

}  // namespace tgi::guide
