// Numbers of a JSON file as serde_json reads them, the JSON reader of the `tokenizers` library: it
// rounds twice, so that the last bit of about every eighth one differs from the nearest double.
// Where a model compares sums of scores that bit decides about ids.
#pragma once

#include <string_view>

namespace tgi {

// text: a JSON number. What is beyond the range of doubles becomes an infinity.
double library_number(std::string_view text);

}  // namespace tgi
