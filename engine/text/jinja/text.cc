#include "engine/text/jinja/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace tgi::jinja {
namespace {

utf8proc_category_t category_of(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

char32_t simple_upper(char32_t character) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(character)));
}

char32_t simple_lower(char32_t character) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character)));
}

char32_t simple_title(char32_t character) {
  return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(character)));
}

// Characters that become several ones (Unicode's SpecialCasing.txt, the unconditional part that
// turns up in running text).
struct SpecialCase {
  char32_t character;
  std::string_view upper;
  std::string_view title;
};

constexpr std::array<SpecialCase, 9> kSpecialCases = {{
    {0x00DF, "SS", "Ss"},
    {0x0149, "\u02BCN", "\u02BCN"},
    {0xFB00, "FF", "Ff"},
    {0xFB01, "FI", "Fi"},
    {0xFB02, "FL", "Fl"},
    {0xFB03, "FFI", "Ffi"},
    {0xFB04, "FFL", "Ffl"},
    {0xFB05, "ST", "St"},
    {0xFB06, "ST", "St"},
}};

const SpecialCase* special_case(char32_t character) {
  const auto found =
      std::find_if(kSpecialCases.begin(), kSpecialCases.end(),
                   [&](const SpecialCase& row) { return row.character == character; });
  return found == kSpecialCases.end() ? nullptr : &*found;
}

void append_upper(std::string& text, char32_t character) {
  if (const SpecialCase* special = special_case(character); special != nullptr) {
    text += special->upper;
  } else {
    append_utf8(simple_upper(character), text);
  }
}

void append_title(std::string& text, char32_t character) {
  if (const SpecialCase* special = special_case(character); special != nullptr) {
    text += special->title;
  } else {
    append_utf8(simple_title(character), text);
  }
}

bool is_cased(char32_t character) {
  const utf8proc_category_t category = category_of(character);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT;
}

// Sigma at the end of a word has its own small letter.
bool is_final_sigma(std::string_view text, size_t start, size_t end) {
  if (start == 0 || text[start - 1] == ' ') return false;
  size_t before = character_begin(text, start - 1);
  if (!is_cased(next_character(text, before))) return false;
  return end >= text.size() || !is_cased(next_character(text, end));
}

void append_lower(std::string& lowered, std::string_view text, size_t& at) {
  const size_t start = at;
  const char32_t character = next_character(text, at);
  if (character == 0x03A3) {
    append_utf8(is_final_sigma(text, start, at) ? 0x03C2 : 0x03C3, lowered);
  } else if (character == 0x0130) {
    lowered += "i\u0307";
  } else {
    append_utf8(simple_lower(character), lowered);
  }
}

}  // namespace

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(count_utf8_characters(text));
}

size_t byte_offset(std::string_view text, size_t index) {
  size_t at = 0;
  while (index > 0 && at < text.size()) {
    at += character_size(text, at);
    --index;
  }
  return at;
}

bool is_space(char32_t character) {
  if (character < 0x80) {
    return character == ' ' || (character >= 0x09 && character <= 0x0D) ||
           (character >= 0x1C && character <= 0x1F);
  }
  const utf8proc_category_t category = category_of(character);
  return character == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
         category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool is_letter(char32_t character) {
  const utf8proc_category_t category = category_of(character);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_word_character(char32_t character) {
  return character == '_' || is_alphanumeric(character);
}

std::string to_upper(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) append_upper(result, next_character(text, at));
  return result;
}

std::string to_lower(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) append_lower(result, text, at);
  return result;
}

std::string to_title(std::string_view text) {
  std::string result;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t character = next_character(text, at);
    if (in_word) {
      at = start;
      append_lower(result, text, at);
    } else {
      append_title(result, character);
    }
    in_word = is_cased(character);
  }
  return result;
}

std::string swap_case(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t character = next_character(text, at);
    if (category_of(character) == UTF8PROC_CATEGORY_LU) {
      at = start;
      append_lower(result, text, at);
    } else {
      append_upper(result, character);
    }
  }
  return result;
}

std::string capitalize(std::string_view text) {
  std::string result;
  size_t at = 0;
  if (!text.empty()) append_title(result, next_character(text, at));
  while (at < text.size()) append_lower(result, text, at);
  return result;
}

std::string fold_case(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const char32_t character = next_character(text, at);
    if (const SpecialCase* special = special_case(character); special != nullptr) {
      result += to_lower(special->upper);
    } else {
      append_utf8(simple_lower(character == 0x03C2 ? 0x03A3 : character), result);
    }
  }
  return result;
}

std::string_view strip(std::string_view text, bool left, bool right, std::string_view characters) {
  const auto is_dropped = [&](size_t at, size_t length) {
    if (characters.empty()) return is_space(next_character(text, at));
    return characters.find(text.substr(at, length)) != std::string_view::npos;
  };
  while (left && !text.empty()) {
    const size_t length = character_size(text, 0);
    if (!is_dropped(0, length)) break;
    text.remove_prefix(length);
  }
  while (right && !text.empty()) {
    const size_t start = character_begin(text, text.size() - 1);
    if (!is_dropped(start, text.size() - start)) break;
    text.remove_suffix(text.size() - start);
  }
  return text;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  const auto is_break = [](char32_t c) {
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
  };
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at;
    const char32_t character = next_character(text, at);
    if (!is_break(character)) continue;
    if (character == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(start, (keep_ends ? at : end) - start));
    start = at;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

bool is_decimal(char32_t character) {
  return category_of(character) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t c) {
  // Superscript, subscript, circled and the like, which are digits but not decimals.
  constexpr std::array<std::pair<char32_t, char32_t>, 18> kDigitRanges = {{
      {0xB2, 0xB3},
      {0xB9, 0xB9},
      {0x1369, 0x1371},
      {0x19DA, 0x19DA},
      {0x2070, 0x2070},
      {0x2074, 0x2079},
      {0x2080, 0x2089},
      {0x2460, 0x2468},
      {0x2474, 0x247C},
      {0x2488, 0x2490},
      {0x24EA, 0x24EA},
      {0x24F5, 0x24FD},
      {0x24FF, 0x24FF},
      {0x2776, 0x277E},
      {0x2780, 0x2788},
      {0x278A, 0x2792},
      {0x10A40, 0x10A43},
      {0x1F100, 0x1F10A},
  }};
  return is_decimal(c) || std::any_of(kDigitRanges.begin(), kDigitRanges.end(), [&](auto range) {
           return c >= range.first && c <= range.second;
         });
}

bool is_numeric(char32_t character) {
  const utf8proc_category_t category = category_of(character);
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}

bool is_alphanumeric(char32_t character) {
  return is_letter(character) || is_numeric(character);
}

bool is_printable(char32_t character) {
  const utf8proc_category_t category = category_of(character);
  const bool is_other = category >= UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CN;
  const bool is_separator = category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP;
  return character == ' ' || (!is_other && !is_separator);
}

bool all_characters(std::string_view text, CharacterTest test) {
  for (size_t at = 0; at < text.size();) {
    if (!test(next_character(text, at))) return false;
  }
  return !text.empty();
}

bool is_lower(std::string_view text) {
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t character = next_character(text, at);
    if (!is_cased(character)) continue;
    if (category_of(character) != UTF8PROC_CATEGORY_LL) return false;
    any = true;
  }
  return any;
}

bool is_upper(std::string_view text) {
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t character = next_character(text, at);
    if (!is_cased(character)) continue;
    if (category_of(character) != UTF8PROC_CATEGORY_LU) return false;
    any = true;
  }
  return any;
}

bool is_title(std::string_view text) {
  bool any = false;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t character = next_character(text, at);
    const bool cased = is_cased(character);
    if (cased && in_word != (category_of(character) == UTF8PROC_CATEGORY_LL)) return false;
    in_word = cased;
    any = any || cased;
  }
  return any;
}

bool is_identifier(std::string_view text) {
  if (text.empty()) return false;
  size_t at = 0;
  const char32_t first = next_character(text, at);
  if (first != '_' && !is_letter(first) && category_of(first) != UTF8PROC_CATEGORY_NL) return false;
  while (at < text.size()) {
    const char32_t character = next_character(text, at);
    const utf8proc_category_t category = category_of(character);
    const bool continues = is_letter(character) || category == UTF8PROC_CATEGORY_NL ||
                           category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
                           category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_PC;
    if (!continues) return false;
  }
  return true;
}

}  // namespace tgi::jinja
