// How values look in log lines and spans.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tgi::http {

// At most `max_length` characters of `text`, then "..."; what is not printable ASCII, and every
// backslash, becomes \xNN, so that no client can forge or break a line.
std::string printable(std::string_view text, size_t max_length = 128);

// Negative and NaN count as 0, what is above three years as three years.
int64_t nanoseconds(double seconds);

// Seconds as Rust's Debug prints a Duration, which is what TGI's spans and logs hold: "1.5s",
// "20.25ms", "3µs".
std::string format_duration(double seconds);

}  // namespace tgi::http
