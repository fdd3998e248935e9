// Times as people and ollama's clients write them: "5m", "1h30m", "300ms", "1.5s", "-1", or a plain
// number of seconds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tgi::ipc {

// Seconds; nothing for what is no time. Units are ns, us, ms, s, m, h, in any order, after a sign.
std::optional<double> parse_duration(std::string_view text);

// How long a model stays without a request: as above, all that is below 0 is for ever, which is -1.
// Throws kInvalidArgument with what was expected and what came.
double parse_keep_alive(std::string_view text);

// "5m", "1h30m", "0.25s", "-1" of what is below 0.
std::string format_keep_alive(double seconds);

}  // namespace tgi::ipc
