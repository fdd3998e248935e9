#include "base/log.h"

#include <fmt/ranges.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <memory>

#include "base/error.h"

namespace tgi {
namespace {

// By LogLevel, as kLogLevelNames.
constexpr std::array<spdlog::level::level_enum, kLogLevelNames.size()> kSpdlogLevels = {
    spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err,
    spdlog::level::off};

spdlog::logger& sink() {
  // Leaked on purpose: threads may still log while statics are destroyed.
  static spdlog::logger* logger = [] {
    auto* made = new spdlog::logger("tgi", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("time=%Y-%m-%dT%H:%M:%S.%e%z %v");
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *logger;
}

void append_value(std::string& line, std::string_view value) {
  bool plain = !value.empty();
  for (const char c : value) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '=' || c == '\\') plain = false;
  }
  if (plain) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      line += '\\';
      line += c;
    } else if (static_cast<unsigned char>(c) < ' ') {
      line += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      line += c;
    }
  }
  line += '"';
}

}  // namespace

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  const auto index = static_cast<size_t>(level);
  if (!sink().should_log(kSpdlogLevels.at(index))) return;
  std::string line = fmt::format("level={} msg=", kLogLevelNames.at(index));
  append_value(line, message);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    append_value(line, field.value);
  }
  sink().log(kSpdlogLevels.at(index), "{}", line);
}

void set_log_level(LogLevel level) {
  sink().set_level(kSpdlogLevels.at(static_cast<size_t>(level)));
}

LogLevel parse_log_level(std::string_view name) {
  for (size_t i = 0; i < kLogLevelNames.size(); ++i) {
    if (kLogLevelNames[i] == name) return static_cast<LogLevel>(i);
  }
  throw Error(Code::kInvalidArgument, fmt::format("log level \"{}\" is not known; use one of {}",
                                                  name, fmt::join(kLogLevelNames, ", ")));
}

}  // namespace tgi
