// How each kind of setting is read and written; see setting_rows.h.
#include "ipc/setting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "ipc/field_table.h"
#include "ipc/setting_rows.h"

namespace tgi::ipc {
namespace {

[[noreturn]] void fail_setting(const SettingFacts& row, const std::string& text) {
  throw Error(Code::kInvalidArgument,
              fmt::format("expected {}, got \"{}\"", allowed_values(row), text));
}

constexpr double kMostSeconds = 1e6;
constexpr double kMostBytes = 1e15;

// Nothing when `text` is no number of this type as a whole.
template <typename T>
std::optional<T> parse_whole_text(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <typename T>
T parse_number(const SettingFacts& row, const std::string& text) {
  const std::optional<T> value = parse_whole_text<T>(text);
  if (!value) fail_setting(row, text);
  const auto real = static_cast<double>(*value);
  const bool is_inside = real <= row.high && (row.above_low ? real > row.low : real >= row.low);
  if (!std::isfinite(real) || !is_inside) fail_setting(row, text);
  return *value;
}

struct SizeUnit {
  std::string_view suffix;
  double bytes;
};
constexpr std::array<SizeUnit, 7> kSizeUnits = {{{"KiB", 1024.0},
                                                 {"MiB", 1048576.0},
                                                 {"GiB", 1073741824.0},
                                                 {"KB", 1e3},
                                                 {"MB", 1e6},
                                                 {"GB", 1e9},
                                                 {"", 1.0}}};

Rules rules_of(const SettingFacts& row, double highest) {
  return {.low = row.low, .high = std::min(row.high, highest), .above_low = row.above_low};
}

}  // namespace

std::string field_name(std::string_view setting) {
  std::string name(setting);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string allowed_values(const SettingFacts& row) {
  const bool has_end = std::isfinite(row.high);
  std::string out;
  switch (row.kind) {
    case SettingKind::kText:
      return row.is_file ? "the path of a file" : "a text";
    case SettingKind::kChoice:
      return fmt::format("one of {}", fmt::join(row.choices, ", "));
    case SettingKind::kSwitch:
      return "true or false, or 1 or 0";
    case SettingKind::kWhole:
      out = has_end ? fmt::format("a whole number from {} to {}", row.low, row.high)
                    : fmt::format("a whole number of at least {}", row.low);
      break;
    case SettingKind::kReal:
      out = fmt::format("a number {} {}", row.above_low ? "above" : "of at least", row.low);
      if (has_end) out += fmt::format(", at most {}", row.high);
      break;
    case SettingKind::kSize:
      out = "a size such as 512MiB or 4GiB";
      break;
    case SettingKind::kSeconds:
      out = "a number of seconds";
      break;
  }
  return row.may_be_auto ? out + ", or auto" : out;
}

std::string setting_help(const SettingFacts& row) {
  std::string out(row.help);
  if (!row.choices.empty()) out += fmt::format("; {}", allowed_values(row));
  return out;
}

void parse_setting(const SettingFacts& row, const std::string& text, std::string& out) {
  const auto& choices = row.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
    fail_setting(row, text);
  }
  out = text;
}

void parse_setting(const SettingFacts& row, const std::string& text, bool& out) {
  const bool is_on = text == "1" || text == "true";
  if (!is_on && text != "0" && text != "false" && !text.empty()) fail_setting(row, text);
  out = is_on;
}

void parse_setting(const SettingFacts& row, const std::string& text, int32_t& out) {
  out = parse_number<int32_t>(row, text);
}

void parse_setting(const SettingFacts& row, const std::string& text, int64_t& out) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view suffix(end, static_cast<size_t>(text.data() + text.size() - end));
  for (const SizeUnit& unit : kSizeUnits) {
    const double bytes = value * unit.bytes;
    const bool is_inside = bytes >= 1 && bytes >= row.low && bytes < kMostBytes;
    if (error != std::errc() || unit.suffix != suffix || !is_inside) continue;
    out = static_cast<int64_t>(bytes);
    return;
  }
  fail_setting(row, text);
}

void parse_setting(const SettingFacts& row, const std::string& text, double& out) {
  out = parse_number<double>(row, text);
}

void parse_setting(const SettingFacts& row,
                   const std::string& text,
                   std::chrono::milliseconds& out) {
  const auto seconds = parse_number<double>(row, text);
  if (seconds > kMostSeconds) fail_setting(row, text);
  out = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

std::string format_setting(const std::string& value) {
  return value;
}
std::string format_setting(bool value) {
  return value ? "1" : "0";
}
std::string format_setting(int32_t value) {
  return fmt::format("{}", value);
}
std::string format_setting(int64_t value) {
  return fmt::format("{}", value);
}
std::string format_setting(double value) {
  return fmt::format("{}", value);
}
std::string format_setting(std::chrono::milliseconds value) {
  return fmt::format("{}", static_cast<double>(value.count()) / 1000);
}

void read_setting(const SettingFacts& row, const OrderedJson& json, std::string& out) {
  const std::string field = field_name(row.name);
  read_value(json, field, {}, out);
  if (row.choices.empty()) return;
  if (std::find(row.choices.begin(), row.choices.end(), out) != row.choices.end()) return;
  fail_field(field, fmt::format("expected {}, got {}", allowed_values(row), out));
}

void read_setting(const SettingFacts& row, const OrderedJson& json, bool& out) {
  read_value(json, field_name(row.name), {}, out);
}

// As a wide number first, so that one that does not fit is refused by the row's own range.
void read_setting(const SettingFacts& row, const OrderedJson& json, int32_t& out) {
  int64_t wide = 0;
  read_value(json, field_name(row.name), rules_of(row, INT32_MAX), wide);
  out = static_cast<int32_t>(wide);
}

void read_setting(const SettingFacts& row, const OrderedJson& json, int64_t& out) {
  read_value(json, field_name(row.name), rules_of(row, kNoLimit), out);
}

void read_setting(const SettingFacts& row, const OrderedJson& json, double& out) {
  read_value(json, field_name(row.name), rules_of(row, kNoLimit), out);
}

void read_setting(const SettingFacts& row,
                  const OrderedJson& json,
                  std::chrono::milliseconds& out) {
  double seconds = 0;
  read_value(json, field_name(row.name), rules_of(row, kMostSeconds), seconds);
  out = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

bool is_auto(const OrderedJson& json) {
  return json == kAutomatic;
}

void write_setting(const std::string& value, OrderedJson& json) {
  json = value;
}
void write_setting(bool value, OrderedJson& json) {
  json = value;
}
void write_setting(int32_t value, OrderedJson& json) {
  json = value;
}
void write_setting(int64_t value, OrderedJson& json) {
  json = value;
}
void write_setting(double value, OrderedJson& json) {
  json = value;
}
void write_setting(std::chrono::milliseconds value, OrderedJson& json) {
  json = static_cast<double>(value.count()) / 1000;
}

}  // namespace tgi::ipc
