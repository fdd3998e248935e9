// What both APIs say of a token in the same words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/json.h"
#include "ipc/generate.h"

namespace tgi::http {

// Null where the token has none: the first of a prompt.
inline OrderedJson logprob_json(const std::optional<double>& logprob) {
  return logprob ? OrderedJson(*logprob) : OrderedJson();
}

// Highest first, and no more than `count`: tokens that tie are left out from the end.
inline std::span<const ipc::TokenInfo> first_of(const std::vector<ipc::TokenInfo>& tokens,
                                                int64_t count) {
  return {tokens.data(), std::min(tokens.size(), static_cast<size_t>(count))};
}

}  // namespace tgi::http
