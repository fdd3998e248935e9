// Characters and normal forms as the `tokenizers` library sees them, built on utf8proc. Where that
// library's Unicode version differs (unicode_tables.h), the library's view wins: token ids depend
// on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tgi {

bool is_white_space(char32_t character);
bool is_numeric(char32_t character);      // categories Nd, Nl, No
bool is_punctuation(char32_t character);  // categories P, and all of ASCII's signs
bool is_combining_mark(char32_t character);
bool is_nonspacing_mark(char32_t character);  // category Mn, as BertNormalizer has it
bool is_control(char32_t character);          // Cc, Cf and Co, but for \t \n \r: the same
void append_lowercase(char32_t character, std::string& out);

// True when `text` holds a character that is newer than Unicode 14.
bool has_newer_characters(std::string_view text);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
std::string normalize(std::string_view text, NormalForm form);

// The same, and by how many characters the text grew at each of the new ones: 0 for the first of
// what a character becomes, 1 for its others; where characters are composed the sum of theirs less
// one for each but the first. Slower.
std::string normalize_counting(std::string_view text,
                               NormalForm form,
                               std::vector<int64_t>& changes);

}  // namespace tgi
