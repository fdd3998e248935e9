// Log lines as logfmt on stderr: time=… level=info msg="model loaded" params=1100048384
// One line per lifecycle event; never in per-token code; never a prompt, never a key.
// Thread-safe.
#pragma once

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

namespace tgi {

enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };
inline constexpr std::array<std::string_view, 5> kLogLevelNames = {"debug", "info", "warn", "error",
                                                                   "off"};

// One key=value pair; the value is quoted when it holds a space, a quote or a control character.
struct LogField {
  template <typename T>
  LogField(std::string_view field_key, const T& field_value)
      : key(field_key), value(fmt::format("{}", field_value)) {}
  std::string_view key;
  std::string value;
};

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

inline void log_info(std::string_view message, std::initializer_list<LogField> fields = {}) {
  log(LogLevel::kInfo, message, fields);
}
inline void log_warn(std::string_view message, std::initializer_list<LogField> fields = {}) {
  log(LogLevel::kWarn, message, fields);
}
inline void log_error(std::string_view message, std::initializer_list<LogField> fields = {}) {
  log(LogLevel::kError, message, fields);
}

void set_log_level(LogLevel level);

// Throws kInvalidArgument naming the known levels.
LogLevel parse_log_level(std::string_view name);

}  // namespace tgi
