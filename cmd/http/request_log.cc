#include "cmd/http/request_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "cmd/http/log_text.h"
#include "ipc/protocol.h"

namespace tgi::http {
namespace {

using ipc::OrderedJson;
using TimePoint = std::chrono::system_clock::time_point;

constexpr std::array<std::pair<LogLevel, std::string_view>, 4> kLevelNames = {{
    {LogLevel::kDebug, "DEBUG"},
    {LogLevel::kInfo, "INFO"},
    {LogLevel::kWarn, "WARN"},
    {LogLevel::kError, "ERROR"},
}};

std::string utc(TimePoint time) {
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(micros / 1'000'000),
                     micros % 1'000'000);
}

OrderedJson json_head(LogLevel level, std::string_view message, TimePoint now) {
  std::string_view name = "INFO";
  for (const auto& [known, known_name] : kLevelNames) {
    if (known == level) name = known_name;
  }
  return {{"timestamp", utc(now)}, {"level", name}, {"message", message}, {"target", "tgi::http"}};
}

std::string dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// The route, or what there was instead of one.
std::string place_of(const RequestRecord& record) {
  if (!record.route.empty()) return record.route;
  return printable(record.path.substr(0, record.path.find('?')));
}

std::optional<double> time_per_token_s(const RequestRecord& record) {
  if (!record.inference_s || record.num_generated_tokens.value_or(0) <= 0) return std::nullopt;
  return *record.inference_s / static_cast<double>(*record.num_generated_tokens);
}

std::string joined(const std::vector<std::string>& list) {
  return fmt::format("{}", fmt::join(list, ","));
}

// Rounded to microseconds.
double to_ms(double seconds) {
  return std::round(seconds * 1e6) / 1e3;
}

std::string ms_or_dash(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.2f}", *seconds * 1e3) : "-";
}

std::string or_dash(const std::optional<int64_t>& count) {
  return count ? std::to_string(*count) : "-";
}

std::string or_dash(std::string text) {
  return text.empty() ? "-" : text;
}

std::string message_of(const RequestRecord& record) {
  if (!record.is_generation) return "request";
  const Failure failure = failure_of(record);
  if (failure == Failure::kNone) return "Success";  // TGI's word
  if (failure != Failure::kDropped) return fmt::format("request failed: {}", failure_name(failure));
  return record.cancelled_phase.empty() ? "client left"
                                        : "client left during " + record.cancelled_phase;
}

template <typename T>
void put_if(OrderedJson& out, const char* key, const std::optional<T>& value) {
  if (value) out[key] = *value;
}

void put_if(OrderedJson& out, const char* key, const std::string& text) {
  if (!text.empty()) out[key] = text;
}

// TGI's span of the handler, in TGI's forms.
OrderedJson span_json(const RequestRecord& record) {
  OrderedJson span = OrderedJson::object();
  const auto put = [&span](const char* key, const std::optional<double>& seconds) {
    if (seconds) span[key] = format_duration(*seconds);
  };
  put("total_time", record.total_s);
  put("validation_time", record.validation_s);
  put("queue_time", record.queue_s);
  put("inference_time", record.inference_s);
  put("time_per_token", time_per_token_s(record));
  span["seed"] = record.seed ? fmt::format("Some({})", *record.seed) : "None";
  span["name"] = record.route;
  return span;
}

}  // namespace

LogLevel level_of(const RequestRecord& record) {
  if (record.status == 499) return LogLevel::kInfo;
  switch (record.is_generation ? failure_of(record) : Failure::kNone) {
    case Failure::kDropped:
      return LogLevel::kInfo;
    case Failure::kOverloaded:
    case Failure::kValidation:
    case Failure::kTemplate:
      return LogLevel::kWarn;
    case Failure::kGeneration:
    case Failure::kIncomplete:
      return LogLevel::kError;
    case Failure::kNone:
      break;
  }
  if (record.status >= 500) return LogLevel::kError;
  if (record.status >= 400) return LogLevel::kWarn;
  return record.is_generation ? LogLevel::kInfo : LogLevel::kDebug;
}

static OrderedJson plain_request_json(const RequestRecord& record, TimePoint now) {
  OrderedJson out = json_head(level_of(record), message_of(record), now);
  out["request_id"] = printable(record.request_id);
  out["method"] = printable(record.method, 16);
  out["route"] = place_of(record);
  out["status"] = record.status;
  put_if(out, "error_type", record.error_type);
  out["total_ms"] = to_ms(record.total_s);
  put_if(out, "trace_id", record.trace.sampled ? record.trace.trace_id : "");
  if (!record.is_generation) return out;

  put_if(out, "model", printable(record.model));
  out["stream"] = record.stream;
  put_if(out, "finish_reason", joined(record.finish_reasons));
  put_if(out, "cancelled_phase", record.cancelled_phase);
  put_if(out, "prompt_tokens", record.num_prompt_tokens);
  put_if(out, "cached_tokens", record.num_cached_tokens);
  put_if(out, "generated_tokens", record.num_generated_tokens);
  put_if(out, "max_new_tokens", record.max_new_tokens);
  out["best_of"] = record.best_of;
  out["n"] = record.n;
  if (record.time_to_first_token_s) out["ttft_ms"] = to_ms(*record.time_to_first_token_s);
  return out;
}

std::string request_json(const RequestRecord& record, TimePoint now) {
  OrderedJson out = plain_request_json(record, now);
  if (!record.is_generation) return dump(out);
  OrderedJson span = span_json(record);
  out["spans"] = OrderedJson::array({span});
  out["span"] = std::move(span);
  return dump(out);
}

void RequestLog::remember(const RequestRecord& record) {
  if (!record.is_generation && record.status < 400) return;
  Ended ended(std::chrono::system_clock::now(), record);
  const std::lock_guard lock(recent_mutex_);
  recent_.push_back(std::move(ended));
  if (recent_.size() > kMaxRecentRequests) recent_.pop_front();
}

OrderedJson RequestLog::recent() const {
  std::deque<Ended> ended;
  {
    const std::lock_guard lock(recent_mutex_);
    ended = recent_;
  }
  OrderedJson out = OrderedJson::array();
  for (auto it = ended.rbegin(); it != ended.rend(); ++it) {
    OrderedJson json = plain_request_json(it->second, it->first);
    json.erase("target");
    out.push_back(std::move(json));
  }
  return out;
}

void RequestLog::write(const RequestRecord& record) {
  remember(record);
  const LogLevel level = level_of(record);
  if (options_.json) {
    if (level < options_.level) return;
    return write_line(request_json(record, std::chrono::system_clock::now()));
  }
  const std::string id = or_dash(printable(record.request_id));
  const std::string method = printable(record.method, 16);
  const std::string place = or_dash(place_of(record));
  if (!record.is_generation) {
    return log(level, "request",
               {{"id", id},
                {"method", method},
                {"route", place},
                {"status", record.status},
                {"error", or_dash(record.error_type)},
                {"total_ms", ms_or_dash(record.total_s)}});
  }
  log(level, message_of(record),
      {{"id", id},
       {"method", method},
       {"route", place},
       {"status", record.status},
       {"error", or_dash(record.error_type)},
       {"model", or_dash(printable(record.model))},
       {"stream", record.stream},
       {"finish", or_dash(joined(record.finish_reasons))},
       {"prompt_tokens", or_dash(record.num_prompt_tokens)},
       {"cached_tokens", or_dash(record.num_cached_tokens)},
       {"generated_tokens", or_dash(record.num_generated_tokens)},
       {"n", record.n},
       {"best_of", record.best_of},
       {"total_ms", ms_or_dash(record.total_s)},
       {"queue_ms", ms_or_dash(record.queue_s)},
       {"ttft_ms", ms_or_dash(record.time_to_first_token_s)},
       {"tpot_ms", ms_or_dash(time_per_token_s(record))},
       {"trace_id", or_dash(record.trace.sampled ? record.trace.trace_id : std::string())}});
}

void RequestLog::event(LogLevel level,
                       std::string_view message,
                       std::initializer_list<LogField> fields) {
  if (!options_.json) return log(level, message, fields);
  if (level < options_.level || level == LogLevel::kOff) return;
  OrderedJson out = json_head(level, message, std::chrono::system_clock::now());
  for (const LogField& field : fields) out[std::string(field.key)] = field.value;
  write_line(dump(out));
}

// A log that can't be written must not fail the request: what does not fit is lost.
void RequestLog::write_line(std::string line) {
  line += '\n';
  const std::lock_guard lock(mutex_);
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = ::write(options_.fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace tgi::http
