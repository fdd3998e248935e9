// Named sets of characters in regular expressions, and letters that are equal but for their case.
// Thread-safe.
#pragma once

#include <optional>
#include <string_view>

#include "engine/guide/code_points.h"

namespace tgi::guide {

CodePoints digit_characters();        // \d: ASCII
CodePoints word_characters();         // \w: ASCII letters, digits, _
CodePoints white_space_characters();  // \s, as ECMA-262 has it
CodePoints line_ends();               // what . does not match

// [:name:]: the fourteen of Rust's crate `regex`, of ASCII alone. None: unknown.
std::optional<CodePoints> posix_characters(std::string_view name);

// \p{...}: a general category (short or long name), a script (also as Script=, sc=, scx=), or a
// binary property that the build's PCRE2 knows. None: unknown.
std::optional<CodePoints> property_characters(std::string_view name);

// With every character also those that differ from it only in case.
CodePoints fold_case(const CodePoints& set);

}  // namespace tgi::guide
