// The gateway's log on stderr: one line per request when it ends, and lifecycle events. Either
// logfmt by base/log.h, or with --json-output one JSON object per line with TGI's field names.
//
// Never in it: prompts, answers, error texts (they may quote either), keys, query strings. What
// the client chose is cut and escaped. Thread-safe.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "cmd/http/request_record.h"
#include "ipc/protocol.h"

namespace tgi::http {

// How many requests RequestLog::recent() knows.
inline constexpr size_t kMaxRecentRequests = 200;

struct RequestLogOptions {
  bool json = false;
  LogLevel level = LogLevel::kInfo;  // of JSON lines; logfmt lines go by set_log_level()
  int fd = STDERR_FILENO;            // of JSON lines; not owned
};

class RequestLog {
 public:
  explicit RequestLog(RequestLogOptions options) : options_(options) {}

  // Requests that generate nothing (health checks, scrapes) and went well are debug lines.
  void write(const RequestRecord& record);

  void event(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

  // The last requests to generate, and others that went wrong, whatever the level of the log: what
  // request_json says of each, without TGI's repetitions. The newest first.
  ipc::OrderedJson recent() const;

 private:
  using Ended = std::pair<std::chrono::system_clock::time_point, RequestRecord>;

  void remember(const RequestRecord& record);
  void write_line(std::string line);

  const RequestLogOptions options_;
  std::mutex mutex_;  // keeps lines whole
  mutable std::mutex recent_mutex_;
  std::deque<Ended> recent_;  // guarded by recent_mutex_; the newest last
};

LogLevel level_of(const RequestRecord& record);

// One line without its newline. Times are UTC with microseconds.
std::string request_json(const RequestRecord& record, std::chrono::system_clock::time_point now);

}  // namespace tgi::http
