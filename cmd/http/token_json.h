// What both APIs say of a token in the same words.
#pragma once

#include <optional>

#include "base/json.h"

namespace tgi::http {

// Null where the token has none: the first of a prompt.
inline OrderedJson logprob_json(const std::optional<double>& logprob) {
  return logprob ? OrderedJson(*logprob) : OrderedJson();
}

}  // namespace tgi::http
