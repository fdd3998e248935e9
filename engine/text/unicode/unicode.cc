#include "engine/text/unicode/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/text/unicode/unicode_tables.h"

namespace tgi {
namespace {

utf8proc_category_t category_of(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

// Lowercase mappings newer than Unicode 14; `step` is what to add.
struct CaseRange {
  char32_t first, last;
  int step;
};
constexpr CaseRange kNewerLowercaseRanges[] = {{0x1C89, 0x1C89, 1},      {0xA7CB, 0xA7CB, -0xA567},
                                               {0xA7CC, 0xA7CC, 1},      {0xA7CE, 0xA7CE, 1},
                                               {0xA7D2, 0xA7D2, 1},      {0xA7D4, 0xA7D4, 1},
                                               {0xA7DA, 0xA7DA, 1},      {0xA7DC, 0xA7DC, -0xA641},
                                               {0x10D50, 0x10D65, 0x20}, {0x16EA0, 0x16EB8, 0x1B}};

// Digits newer than Unicode 16, which the library's standard library knows.
constexpr CodeRange kNewerDigits[] = {{0x11DE0, 0x11DE9}, {0x16FF4, 0x16FF6}};

// Marks to the library only: it has the categories of an older Unicode.
constexpr char32_t kFirstFormerMark = 0x1CF2;
constexpr char32_t kLastFormerMark = 0x1CF3;

// A vowel that utf8proc takes for a final consonant without a sound, and loses.
constexpr char32_t kBeforeHangulFinals = 0x11A7;

bool is_opaque(char32_t character) {
  return character == kBeforeHangulFinals ||
         find_range(opaque_to_normal_forms(), character) != nullptr ||
         find_range(since_unicode_14(), character) != nullptr;
}

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE;
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) options |= UTF8PROC_COMPOSE;
  if (form == NormalForm::kNfd || form == NormalForm::kNfkd) options |= UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

// A part of a character; change: 0 for the first part, 1 for the others.
struct Part {
  utf8proc_int32_t character;
  int combining_class;
  int64_t change;
};

int combining_class(utf8proc_int32_t character) {
  return character < 0x300 ? 0 : utf8proc_get_property(character)->combining_class;
}

// Puts each run of marks into canonical order. utf8proc's own way takes quadratic time, which a
// text of nothing but marks would turn against us.
void order_marks(std::vector<Part>& parts) {
  const auto is_starter = [](const Part& part) { return part.combining_class == 0; };
  for (auto begin = parts.begin(); begin != parts.end();) {
    const auto end = std::find_if(begin, parts.end(), is_starter);
    if (end - begin > 1) {
      std::stable_sort(begin, end, [](const Part& left, const Part& right) {
        return left.combining_class < right.combining_class;
      });
    }
    begin = end == parts.end() ? end : end + 1;
  }
}

// The characters of `text` taken apart, with their marks in order. whole: what isn't.
template <typename Whole>
std::vector<Part> decompose(std::string_view text, utf8proc_option_t options, const Whole& whole) {
  std::vector<Part> parts;
  parts.reserve(text.size());
  utf8proc_int32_t found[32];  // no character has more than 18 parts
  int boundary = 0;            // not asked for
  for (size_t offset = 0; offset < text.size();) {
    const char32_t character = next_character(text, offset);
    if (whole(character)) {
      parts.push_back({static_cast<utf8proc_int32_t>(character), 0, 0});
      continue;
    }
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(character), found, std::size(found), options, &boundary);
    if (count < 0) throw Error(Code::kInternal, std::string("utf8proc: ") + utf8proc_errmsg(count));
    TGI_CHECK(static_cast<size_t>(count) <= std::size(found));
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      parts.push_back({found[i], combining_class(found[i]), i == 0 ? 0 : 1});
    }
  }
  order_marks(parts);
  return parts;
}

// What two characters side by side are composed to, or 0.
utf8proc_int32_t compose(utf8proc_int32_t left, utf8proc_int32_t right, utf8proc_option_t options) {
  utf8proc_int32_t both[] = {left, right};
  return utf8proc_normalize_utf32(both, 2, options) == 1 ? both[0] : 0;
}

// Composes in place, by the algorithm of Unicode's section 3.11, and sums up the changes.
void compose_parts(std::vector<Part>& parts, utf8proc_option_t options) {
  constexpr size_t kNone = SIZE_MAX;
  size_t starter = kNone;  // what the next ones may be composed with
  size_t size = 0;         // of what is done
  for (const Part& part : parts) {
    // Blocked by a mark of the same or a higher class between the two, or by another starter.
    const int between =
        starter == kNone || starter + 1 == size ? -1 : parts[size - 1].combining_class;
    utf8proc_int32_t composed = 0;
    if (starter != kNone && between < part.combining_class &&
        !is_opaque(static_cast<char32_t>(part.character)) &&
        !is_opaque(static_cast<char32_t>(parts[starter].character))) {
      composed = compose(parts[starter].character, part.character, options);
    }
    if (composed != 0) {
      parts[starter].character = composed;
      parts[starter].change += part.change - 1;
      continue;
    }
    if (part.combining_class == 0) starter = size;
    parts[size++] = part;
  }
  parts.resize(size);
}

void append_normalized(std::string_view text, NormalForm form, std::string& out) {
  if (text.empty()) return;
  const utf8proc_option_t options = options_of(form);
  std::vector<utf8proc_int32_t> characters;
  for (const Part& part : decompose(text, options, [](char32_t) { return false; })) {
    characters.push_back(part.character);
  }
  const utf8proc_ssize_t count = utf8proc_normalize_utf32(
      characters.data(), static_cast<utf8proc_ssize_t>(characters.size()), options);
  if (count < 0) throw Error(Code::kInternal, std::string("utf8proc: ") + utf8proc_errmsg(count));
  characters.resize(static_cast<size_t>(count));
  for (const utf8proc_int32_t character : characters) {
    append_utf8(static_cast<char32_t>(character), out);
  }
}

// The number of bytes at the start that every normal form leaves alone.
size_t stable_prefix(std::string_view text, NormalForm form) {
  // Below U+0300 nothing composes with what is before it; NFC changes nothing there.
  const bool composed = form == NormalForm::kNfc;
  size_t offset = 0;
  while (offset < text.size()) {
    const auto byte = static_cast<unsigned char>(text[offset]);
    if (byte >= 0xCC || (byte >= 0x80 && !composed)) break;
    offset += utf8_size(text[offset]);
  }
  if (offset == text.size() || offset == 0) return offset;
  // The last one may compose with what follows.
  return character_begin(text, offset - 1);
}

}  // namespace

bool is_white_space(char32_t character) {
  if (character < 0x80) return character == ' ' || (character >= '\t' && character <= '\r');
  if (character == 0x85) return true;
  const utf8proc_category_t category = category_of(character);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool is_numeric(char32_t character) {
  if (character < 0x80) return character >= '0' && character <= '9';
  const utf8proc_category_t category = category_of(character);
  if (category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
      category == UTF8PROC_CATEGORY_NO) {
    return true;
  }
  if (const CategoryRange* row = find_range(since_unicode_14(), character)) {
    return row->category[0] == 'N';
  }
  return find_range(std::span<const CodeRange>(kNewerDigits), character) != nullptr;
}

bool is_punctuation(char32_t character) {
  if (character < 0x80) {
    const bool alphanumeric = (character >= '0' && character <= '9') ||
                              (character >= 'A' && character <= 'Z') ||
                              (character >= 'a' && character <= 'z');
    return character > ' ' && character < 0x7F && !alphanumeric;
  }
  if (character == 0x166D || character == 0x111C9) return true;  // reclassified since Unicode 8
  const utf8proc_category_t category = category_of(character);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO &&
         find_range(not_punctuation(), character) == nullptr &&
         find_range(since_unicode_14(), character) == nullptr;
}

bool is_combining_mark(char32_t character) {
  if (character < 0x300) return false;
  if (character >= kFirstFormerMark && character <= kLastFormerMark) return true;
  const utf8proc_category_t category = category_of(character);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME &&
         !is_opaque(character);
}

bool is_nonspacing_mark(char32_t character) {
  return character >= 0x300 && find_range(nonspacing_marks(), character) != nullptr;
}

bool is_control(char32_t character) {
  if (character < 0x7F) {
    return character < ' ' && character != '\t' && character != '\n' && character != '\r';
  }
  return find_range(control_characters(), character) != nullptr;
}

void append_lowercase(char32_t character, std::string& out) {
  if (character == 0x130) {  // the only one that becomes two characters
    out += "i\xCC\x87";
    return;
  }
  for (const CaseRange& row : kNewerLowercaseRanges) {
    if (character >= row.first && character <= row.last) {
      append_utf8(static_cast<char32_t>(static_cast<int>(character) + row.step), out);
      return;
    }
  }
  const auto lower = utf8proc_tolower(static_cast<utf8proc_int32_t>(character));
  append_utf8(static_cast<char32_t>(lower), out);
}

bool has_newer_characters(std::string_view text) {
  const std::span<const CategoryRange> rows = since_unicode_14();
  size_t offset = 0;
  while (offset < text.size()) {
    // All of them take three bytes or more.
    if (static_cast<unsigned char>(text[offset]) < 0xE0) {
      ++offset;
      continue;
    }
    const char32_t character = next_character(text, offset);
    const bool everyday = (character >= 0x3000 && character < 0xA7CB && character > 0x31EF) ||
                          (character >= 0xA7DD && character < 0x105C0);
    if (!everyday && find_range(rows, character) != nullptr) return true;
  }
  return false;
}

std::string normalize(std::string_view text, NormalForm form) {
  size_t begin = stable_prefix(text, form);
  std::string out(text.substr(0, begin));
  out.reserve(text.size());
  size_t offset = begin;
  while (offset < text.size()) {
    const size_t at = offset;
    if (!is_opaque(next_character(text, offset))) continue;
    // A starter that composes with nothing: what is on its two sides doesn't interact.
    append_normalized(text.substr(begin, at - begin), form, out);
    out += text.substr(at, offset - at);
    begin = offset;
  }
  append_normalized(text.substr(begin), form, out);
  return out;
}

std::string normalize_counting(std::string_view text,
                               NormalForm form,
                               std::vector<int64_t>& changes) {
  const utf8proc_option_t options = options_of(form);
  std::vector<Part> parts = decompose(text, options, is_opaque);
  if ((options & UTF8PROC_COMPOSE) != 0) compose_parts(parts, options);
  std::string out;
  out.reserve(text.size());
  changes.clear();
  for (const Part& part : parts) {
    append_utf8(static_cast<char32_t>(part.character), out);
    changes.push_back(part.change);
  }
  return out;
}

}  // namespace tgi
