// Python's str on UTF-8: positions and lengths count characters (code points), white space, letters
// and case are Unicode's. Every function expects valid UTF-8 and gives valid UTF-8. No limits are
// checked here.
//
// Differs from Python: of Unicode's special casing only sharp s, the Latin ligatures, n preceded by
// apostrophe, dotted I and final sigma are known; isnumeric knows no CJK numerals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tgi::jinja {

size_t count_characters(std::string_view text);
// Where character number `index` starts; the size of the text when there are fewer.
size_t byte_offset(std::string_view text, size_t index);

bool is_space(char32_t character);  // str.isspace
bool is_letter(char32_t character);
bool is_word_character(char32_t character);  // what \w matches

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);  // str.title, not the title filter
std::string swap_case(std::string_view text);
std::string capitalize(std::string_view text);
std::string fold_case(std::string_view text);

// str.strip, lstrip, rstrip. An empty `characters` stands for white space.
std::string_view strip(std::string_view text,
                       bool left,
                       bool right,
                       std::string_view characters = {});
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

using CharacterTest = bool (*)(char32_t);
bool is_decimal(char32_t character);
bool is_digit(char32_t character);
bool is_numeric(char32_t character);
bool is_alphanumeric(char32_t character);
bool is_printable(char32_t character);
// True for a text with at least one character, all of which pass.
bool all_characters(std::string_view text, CharacterTest test);

bool is_lower(std::string_view text);
bool is_upper(std::string_view text);
bool is_title(std::string_view text);
bool is_identifier(std::string_view text);

}  // namespace tgi::jinja
