#include "cmd/http/log_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tgi::http {

std::string printable(std::string_view text, size_t max_length) {
  std::string out;
  for (const char c : text.substr(0, max_length)) {
    if (c >= ' ' && c <= '~' && c != '\\') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (text.size() > max_length) out += "...";
  return out;
}

int64_t nanoseconds(double seconds) {
  constexpr double kMaxSeconds = 1e8;
  return seconds > 0 ? std::llround(std::min(seconds, kMaxSeconds) * 1e9) : 0;
}

std::string format_duration(double seconds) {
  struct Unit {
    int64_t ns;
    int num_digits;  // after the point
    const char* name;
  };
  constexpr std::array<Unit, 4> kUnits = {
      {{1'000'000'000, 9, "s"}, {1'000'000, 6, "ms"}, {1'000, 3, "µs"}, {1, 0, "ns"}}};
  const int64_t ns = nanoseconds(seconds);
  const Unit& unit =
      *std::find_if(kUnits.begin(), kUnits.end() - 1, [&](const Unit& u) { return ns >= u.ns; });
  std::string out = std::to_string(ns / unit.ns);
  if (ns % unit.ns != 0) {
    out += fmt::format(".{:0{}}", ns % unit.ns, unit.num_digits);
    out.erase(out.find_last_not_of('0') + 1);
  }
  return out + unit.name;
}

}  // namespace tgi::http
