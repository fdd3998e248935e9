// Names for answers and their parts.
#pragma once

#include <string>
#include <string_view>

namespace tgi::http {

// "PREFIX_" and 48 hexadecimal digits that nobody can guess: whoever knows the name of a stored
// answer may read it.
std::string random_id(std::string_view prefix);

}  // namespace tgi::http
