// What a load test asks a server before it begins: is it there, which model, how it counts tokens.
#pragma once

#include <optional>
#include <string>

#include "cmd/bench/http_transport.h"

namespace tgi::bench {

// Fills in target.body.model where it is empty and the server tells, and target.words unless
// `tokens_per_word` is given. Returns a note for the report when prompt lengths are a guess. Throws
// when the server can't be reached or refuses what would be asked of it: kUnavailable,
// kInvalidArgument (401, 403, 4xx), kNotFound, kOverloaded.
std::optional<std::string> probe_server(HttpTarget& target,
                                        std::optional<double> tokens_per_word,
                                        int cancel_fd);

}  // namespace tgi::bench
