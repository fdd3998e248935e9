// JSON that stands in a text of anybody: arguments of calls, schemas, files. Nothing recursive may
// be done to it before its depth is known.
#pragma once

#include <string_view>

#include "base/nlohmann_json.h"

namespace tgi {

// Whether arrays and objects nest deeper than that; of a text that is no JSON whatever it looks
// like.
bool nests_deeper(std::string_view text, int max_depth);

// The JSON of a text that anybody may have written; discarded where it is none, or nests deeper:
// copying or writing it could take all of a thread's stack.
template <typename AnyJson = nlohmann::ordered_json>
AnyJson json_or_discarded(std::string_view text, int max_depth = 128) {
  // The library takes a zero byte for the end of the text, whatever follows.
  const bool has_zero = text.find('\0') != std::string_view::npos;
  if (has_zero || nests_deeper(text, max_depth)) return AnyJson(AnyJson::value_t::discarded);
  return AnyJson::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace tgi
