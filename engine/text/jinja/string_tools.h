// Work on strings that both the methods of str and the filters need, within a budget.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/builtin.h"
#include "engine/text/jinja/value.h"

namespace tgi::jinja {

// The limit on splits: negative for none. Parts come in the order of the text either way.
std::vector<std::string_view> split_words(std::string_view text, Int max_splits, bool from_right);
std::vector<std::string_view> split_at(std::string_view text,
                                       std::string_view separator,
                                       Int max_splits,
                                       bool from_right);
Value list_of_strings(const std::vector<std::string_view>& parts, bool are_markup, Budget& budget);

// The first `count` places, all when negative. An empty `old_text` is found around each character.
std::string replace_all(std::string_view text,
                        std::string_view old_text,
                        std::string_view new_text,
                        Int count,
                        Budget& budget);

enum class Padding { kBefore, kAfter, kBoth };
// `width` in characters; `fill` is one character.
std::string pad_text(
    std::string_view text, Int width, std::string_view fill, Padding padding, Budget& budget);

// The value of a replacement field such as "0.name[key]".
Value look_up_field(Interpreter& in, std::string_view field, const Arguments& arguments);

}  // namespace tgi::jinja
