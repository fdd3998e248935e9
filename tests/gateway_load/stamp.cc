#include "tests/gateway_load/stamp.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <iterator>

namespace tgi {

int64_t monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void append_stamp(const Stamp& stamp, std::string& out) {
  fmt::format_to(std::back_inserter(out), "~{}.{}.{}~", stamp.stream, stamp.token,
                 stamp.written_ns);
}

std::optional<Stamp> find_stamp(std::string_view text) {
  const size_t begin = text.find('~');
  if (begin == std::string_view::npos) return std::nullopt;
  const char* at = text.data() + begin + 1;
  const char* const end = text.data() + text.size();
  const auto read = [&](auto& number, char after) {
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || next == end || *next != after) return false;
    at = next + 1;
    return true;
  };
  Stamp stamp;
  if (!read(stamp.stream, '.') || !read(stamp.token, '.') || !read(stamp.written_ns, '~')) {
    return std::nullopt;
  }
  return stamp;
}

}  // namespace tgi
