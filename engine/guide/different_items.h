// The items of a JSON array that has to have different ones: what a text ends with, how else the
// same value can be written, and how long values get when short ones are used up.
//
// Values are numbers, strings, words, and arrays and objects of them whose members have a fixed
// order. Strings are written as JsonTextRegex::canonical() has it, numbers without an exponent.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/guide/expr_pool.h"

namespace tgi::guide {

// The value that the text ends with. REQUIRES: what comes before is '[', ',' or white space.
std::string_view last_json_value(std::string_view text);

// One text for all of the same value.
std::string canonical_json_value(std::string_view text);

// All texts of canonical values, and perhaps others that no item has.
int32_t texts_of_json_values(ExprPool& pool, std::span<const std::string> values);

// So long are the `count` shortest different values of a language, from the shortest on; fewer
// where it has not so many, or where it takes too much to find them.
std::vector<int32_t> lengths_of_different_values(ExprPool& pool, int32_t language, int32_t count);

}  // namespace tgi::guide
