// Whether a text is JSON (RFC 8259), numbers of any size included: the library's parser refuses
// those that no double holds, which are JSON all the same.
#pragma once

#include <string_view>

namespace tgi::dialect {

bool is_json_object(std::string_view text);
bool is_json_number(std::string_view text);

}  // namespace tgi::dialect
