#include "engine/guide/regex_sets.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace tgi::guide {
namespace {

struct CodeFree {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct MatchFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

// Names that ECMA-262 spells out and PCRE2 abbreviates.
constexpr std::pair<std::string_view, std::string_view> kLongNames[] = {
    {"Any", "Any"},
    {"ASCII", "ASCII"},
    {"Cased_Letter", "L&"},
    {"LC", "L&"},
    {"Close_Punctuation", "Pe"},
    {"Connector_Punctuation", "Pc"},
    {"Control", "Cc"},
    {"cntrl", "Cc"},
    {"Currency_Symbol", "Sc"},
    {"Dash_Punctuation", "Pd"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"Enclosing_Mark", "Me"},
    {"Final_Punctuation", "Pf"},
    {"Format", "Cf"},
    {"Initial_Punctuation", "Pi"},
    {"Letter", "L"},
    {"Letter_Number", "Nl"},
    {"Line_Separator", "Zl"},
    {"Lowercase_Letter", "Ll"},
    {"Mark", "M"},
    {"Combining_Mark", "M"},
    {"Math_Symbol", "Sm"},
    {"Modifier_Letter", "Lm"},
    {"Modifier_Symbol", "Sk"},
    {"Nonspacing_Mark", "Mn"},
    {"Number", "N"},
    {"Open_Punctuation", "Ps"},
    {"Other", "C"},
    {"Other_Letter", "Lo"},
    {"Other_Number", "No"},
    {"Other_Punctuation", "Po"},
    {"Other_Symbol", "So"},
    {"Paragraph_Separator", "Zp"},
    {"Private_Use", "Co"},
    {"Punctuation", "P"},
    {"punct", "P"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Spacing_Mark", "Mc"},
    {"Symbol", "S"},
    {"Titlecase_Letter", "Lt"},
    {"Unassigned", "Cn"},
    {"Uppercase_Letter", "Lu"},
};

// The name that PCRE2 has for it; "" for what it can't be.
std::string pcre_name(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '&';
  };
  std::string prefix;
  if (const size_t equals = name.find('='); equals != std::string_view::npos) {
    const std::string_view key = name.substr(0, equals);
    name = name.substr(equals + 1);
    if (key == "Script" || key == "sc") {
      prefix = "sc:";
    } else if (key == "Script_Extensions" || key == "scx") {
      prefix = "scx:";
    } else if (key != "General_Category" && key != "gc") {
      return "";
    }
  }
  if (name.empty() || !std::ranges::all_of(name, is_plain)) return "";
  if (prefix.empty()) {
    const auto* const found =
        std::ranges::find(kLongNames, name, [](const auto& row) { return row.first; });
    if (found != std::end(kLongNames)) return std::string(found->second);
  }
  return prefix + std::string(name);
}

// All characters, one after the other, for PCRE2 to look for those of a property.
const std::string& all_characters() {
  static const std::string text = [] {
    std::string all;
    all.reserve(size_t{0x110000} * 4);
    std::string block;  // of 64 characters, which differ in their last byte alone
    for (char32_t c = 0; c <= 0x10FFFF; c += 64) {
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      block.clear();
      for (char32_t of_block = c; of_block < c + 64 && (c < 128 || of_block == c); ++of_block)
        append_utf8(of_block, block);
      if (c < 128) {
        all += block;
        continue;
      }
      for (char last = 0; last < 64; ++last) {
        block.back() = static_cast<char>(0x80 | last);
        all += block;
      }
    }
    return all;
  }();
  return text;
}

std::optional<CodePoints> find_property(const std::string& name) {
  const std::string pattern = "\\p{" + name + "}++";
  int error = 0;
  size_t at = 0;
  const std::unique_ptr<pcre2_code, CodeFree> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_NO_UTF_CHECK, &error, &at, nullptr));
  if (code == nullptr) return std::nullopt;
  // Ten times as fast, where this build of PCRE2 and this system have it.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  const std::unique_ptr<pcre2_match_data, MatchFree> match(
      pcre2_match_data_create_from_pattern(code.get(), nullptr));
  const std::string& text = all_characters();
  std::vector<CodePointRange> found;
  size_t offset = 0;
  while (pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), offset,
                     PCRE2_NO_UTF_CHECK, match.get(), nullptr) > 0) {
    // Characters that follow one another in the text do so in the code.
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match.get());
    size_t first = range[0];
    size_t last = character_begin(text, range[1] - 1);
    offset = range[1];
    found.push_back({next_character(text, first), next_character(text, last)});
  }
  return normalize_code_points(found);
}

// By the character that a family of cases is folded to: all of the family.
struct CaseFamilies {
  std::unordered_map<char32_t, std::vector<char32_t>> members;
  std::unordered_map<char32_t, char32_t> root;

  CaseFamilies() {
    // Ideographs, which have no case, fill the planes from the third on.
    for (char32_t c = 0; c < 0x20000; ++c) {
      const auto character = static_cast<utf8proc_int32_t>(c);
      const auto lower = static_cast<char32_t>(utf8proc_tolower(character));
      const auto upper = static_cast<char32_t>(utf8proc_toupper(character));
      if (lower == c && upper == c) continue;
      // The upper case first: final sigma and sigma meet there. Both may be outside ASCII for a
      // letter inside, as the Kelvin sign is for k.
      const auto fold = static_cast<char32_t>(
          utf8proc_tolower(utf8proc_toupper(static_cast<utf8proc_int32_t>(lower))));
      root[c] = fold;
      members[fold].push_back(c);
    }
    for (auto& [fold, family] : members) {
      root[fold] = fold;
      if (!std::ranges::binary_search(family, fold)) family.push_back(fold);
    }
  }
};

}  // namespace

CodePoints digit_characters() {
  return {{'0', '9'}};
}

CodePoints word_characters() {
  return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
}

CodePoints white_space_characters() {
  return {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
          {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}

CodePoints line_ends() {
  return {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
}

std::optional<CodePoints> posix_characters(std::string_view name) {
  const std::pair<std::string_view, CodePoints> classes[] = {
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 0x7F}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}},
      {"digit", {{'0', '9'}}},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", word_characters()},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  const auto* const found =
      std::ranges::find(classes, name, [](const auto& row) { return row.first; });
  if (found == std::end(classes)) return std::nullopt;
  return found->second;
}

std::optional<CodePoints> property_characters(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, CodePoints> known;
  const std::string spelled = pcre_name(name);
  if (spelled.empty()) return std::nullopt;
  if (spelled == "Any") return CodePoints{normalize_code_points({{{0, 0x10FFFF}}})};
  if (spelled == "ASCII") return CodePoints{{0, 0x7F}};
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(spelled); found != known.end()) return found->second;
  std::optional<CodePoints> set = find_property(spelled);
  if (set) known.emplace(spelled, *set);
  return set;
}

CodePoints fold_case(const CodePoints& set) {
  static const CaseFamilies families;
  std::vector<CodePointRange> all(set.begin(), set.end());
  const auto add_family = [&](char32_t fold) {
    for (const char32_t member : families.members.at(fold)) all.push_back({member, member});
  };
  for (const CodePointRange& range : set) {
    if (range.last - range.first > 4096) continue;
    for (char32_t c = range.first; c <= range.last; ++c) {
      if (const auto found = families.root.find(c); found != families.root.end())
        add_family(found->second);
    }
  }
  const bool has_wide = std::ranges::any_of(
      set, [](const CodePointRange& range) { return range.last - range.first > 4096; });
  if (has_wide) {
    for (const auto& [character, fold] : families.root) {
      if (contains_code_point(set, character)) add_family(fold);
    }
  }
  return normalize_code_points(all);
}

}  // namespace tgi::guide
