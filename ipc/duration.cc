#include "ipc/duration.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace tgi::ipc {
namespace {

struct Unit {
  std::string_view name;
  double seconds;
};
// A longer name before one that it begins with.
constexpr std::array<Unit, 7> kUnits = {{{"ns", 1e-9},
                                         {"us", 1e-6},
                                         {"\u00b5s", 1e-6},
                                         {"ms", 1e-3},
                                         {"s", 1},
                                         {"m", 60},
                                         {"h", 3600}}};

// Taken off the front; nothing where none is there.
std::optional<double> take_number(std::string_view& text) {
  const bool begins = !text.empty() && (text[0] == '.' || (text[0] >= '0' && text[0] <= '9'));
  if (!begins) return std::nullopt;
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

std::optional<double> take_unit(std::string_view& text) {
  for (const Unit& unit : kUnits) {
    if (!text.starts_with(unit.name)) continue;
    text.remove_prefix(unit.name.size());
    return unit.seconds;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> parse_duration(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  double sum = 0;
  for (bool is_first = true; is_first || !text.empty(); is_first = false) {
    const std::optional<double> value = take_number(text);
    if (!value) return std::nullopt;
    if (is_first && text.empty()) {
      sum = *value;
      break;
    }
    const std::optional<double> unit = take_unit(text);
    if (!unit) return std::nullopt;
    sum += *value * *unit;
  }
  if (!std::isfinite(sum)) return std::nullopt;
  return is_negative ? -sum : sum;
}

double parse_keep_alive(std::string_view text) {
  const std::optional<double> seconds = parse_duration(text);
  if (seconds) return *seconds < 0 ? -1 : *seconds;
  throw Error(Code::kInvalidArgument,
              fmt::format("expected a time such as 5m, 1h30m or 300 (seconds), 0 (at once) or -1 "
                          "(it stays), got \"{}\"",
                          text.substr(0, 100)));
}

std::string format_keep_alive(double seconds) {
  if (seconds < 0) return "-1";
  const double whole = std::floor(seconds);
  if (whole != seconds || seconds >= 1e9) return fmt::format("{}s", seconds);
  const auto left = static_cast<int64_t>(whole);
  if (left == 0) return "0";
  std::string out;
  const auto add = [&](int64_t count, char unit) {
    if (count > 0) out += fmt::format("{}{}", count, unit);
  };
  add(left / 3600, 'h');
  add(left / 60 % 60, 'm');
  add(left % 60, 's');
  return out;
}

}  // namespace tgi::ipc
