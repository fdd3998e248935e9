// What is wrong with a text that is not JSON, in the terms of who wrote it: line, column, what was
// read and what was expected; never the words of the library that parsed it.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/error.h"

namespace tgi {

// For a parser of nlohmann's that refused `text`: `position` is its count of bytes read, `message`
// the what() of its exception.
[[nodiscard]] Error json_syntax_error(std::string_view text,
                                      size_t position,
                                      std::string_view message);

// Parses `text` once more to find the place, which the library keeps for some mistakes only.
// REQUIRES: the library refused it.
[[nodiscard]] Error json_syntax_error(std::string_view text);

}  // namespace tgi
