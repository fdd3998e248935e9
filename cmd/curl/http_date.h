// The dates of HTTP's headers.
#pragma once

#include <ctime>
#include <optional>
#include <string>

namespace tgi::curl {

// "Sun, 06 Nov 1994 08:49:37 GMT", in any of HTTP's notations.
std::optional<std::time_t> parse_http_date(const std::string& text);

}  // namespace tgi::curl
