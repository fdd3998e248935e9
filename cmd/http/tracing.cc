#include "cmd/http/tracing.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cmd/http/log_text.h"
#include "ipc/protocol.h"

namespace tgi::http {
namespace {

using ipc::OrderedJson;

int64_t unix_ns(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

template <typename T>
void add_if(Attributes& out, const char* key, const std::optional<T>& value) {
  if (value) out.emplace_back(key, *value);
}

void add_duration_if(Attributes& out, const char* key, const std::optional<double>& seconds) {
  if (seconds) out.emplace_back(key, format_duration(*seconds));
}

// Names: OpenTelemetry's conventions for HTTP and generative AI, TGI's for its own fields, and
// tgi.* for what neither has.
Attributes server_attributes(const RequestRecord& record) {
  Attributes out;
  out.emplace_back("http.request.method", printable(record.method, 16));
  if (!record.route.empty()) out.emplace_back("http.route", record.route);
  out.emplace_back("http.response.status_code", int64_t{record.status});
  if (!record.error_type.empty()) out.emplace_back("error.type", record.error_type);
  out.emplace_back("tgi.request_id", printable(record.request_id));
  if (!record.is_generation) return out;

  if (!record.model.empty()) out.emplace_back("gen_ai.request.model", printable(record.model));
  add_if(out, "gen_ai.request.max_tokens", record.max_new_tokens);
  add_if(out, "gen_ai.usage.input_tokens", record.num_prompt_tokens);
  add_if(out, "gen_ai.usage.output_tokens", record.num_generated_tokens);
  if (!record.finish_reasons.empty()) {
    out.emplace_back("gen_ai.response.finish_reasons", record.finish_reasons);
  }
  out.emplace_back("total_time", format_duration(record.total_s));
  add_duration_if(out, "validation_time", record.validation_s);
  add_duration_if(out, "queue_time", record.queue_s);
  add_duration_if(out, "inference_time", record.inference_s);
  if (record.inference_s && record.num_generated_tokens.value_or(0) > 0) {
    const double num_generated = static_cast<double>(*record.num_generated_tokens);
    out.emplace_back("time_per_token", format_duration(*record.inference_s / num_generated));
  }
  if (record.seed) out.emplace_back("seed", std::to_string(*record.seed));
  out.emplace_back("tgi.stream", record.stream);
  out.emplace_back("tgi.best_of", record.best_of);
  out.emplace_back("tgi.n", record.n);
  add_if(out, "tgi.cached_tokens", record.num_cached_tokens);
  add_if(out, "tgi.time_to_first_token", record.time_to_first_token_s);
  if (!record.cancelled_phase.empty()) {
    out.emplace_back("tgi.cancelled_phase", record.cancelled_phase);
  }
  return out;
}

// By the conventions for HTTP a client's error is no error of the server; what went wrong after
// the status had been sent is.
bool is_server_error(const RequestRecord& record) {
  const Failure failure = failure_of(record);
  return record.status >= 500 || failure == Failure::kGeneration || failure == Failure::kIncomplete;
}

Span server_span(const RequestRecord& record) {
  Span span;
  span.trace_id = record.trace.trace_id;
  span.span_id = record.trace.span_id;
  span.trace_state = record.trace.trace_state;
  if (record.trace_in) span.parent_span_id = record.trace_in->span_id;
  span.name = printable(record.method, 16);
  if (!record.route.empty()) span.name += " " + record.route;
  span.kind = SpanKind::kServer;
  span.start_ns = unix_ns(record.started_at);
  span.end_ns = span.start_ns + nanoseconds(record.total_s);
  span.attributes = server_attributes(record);
  if (is_server_error(record)) span.status = SpanStatus::kError;
  return span;
}

// --- OTLP. 64-bit integers are strings there, enumerators numbers, ids hex.

OrderedJson to_json(const std::string& text) {
  return {{"stringValue", text}};
}
OrderedJson to_json(int64_t number) {
  return {{"intValue", std::to_string(number)}};
}
OrderedJson to_json(double number) {
  if (!std::isfinite(number)) return to_json(fmt::format("{}", number));
  return {{"doubleValue", number}};
}
OrderedJson to_json(bool flag) {
  return {{"boolValue", flag}};
}
OrderedJson to_json(const std::vector<std::string>& list) {
  OrderedJson values = OrderedJson::array();
  for (const std::string& text : list) values.push_back(to_json(text));
  return {{"arrayValue", {{"values", std::move(values)}}}};
}

OrderedJson to_json(const Attributes& attributes) {
  OrderedJson out = OrderedJson::array();
  for (const auto& [key, value] : attributes) {
    out.push_back({{"key", key},
                   {"value", std::visit([](const auto& held) { return to_json(held); }, value)}});
  }
  return out;
}

OrderedJson to_json(const Span& span) {
  OrderedJson out = {{"traceId", span.trace_id}, {"spanId", span.span_id}};
  if (!span.trace_state.empty()) out["traceState"] = span.trace_state;
  if (!span.parent_span_id.empty()) out["parentSpanId"] = span.parent_span_id;
  out["name"] = span.name;
  out["kind"] = static_cast<int>(span.kind);
  out["startTimeUnixNano"] = std::to_string(span.start_ns);
  out["endTimeUnixNano"] = std::to_string(span.end_ns);
  out["attributes"] = to_json(span.attributes);
  if (span.status != SpanStatus::kUnset) out["status"] = {{"code", static_cast<int>(span.status)}};
  return out;
}

}  // namespace

std::vector<Span> request_spans(const RequestRecord& record) {
  if (!record.trace.sampled) return {};
  std::vector<Span> spans = {server_span(record)};
  if (!record.is_generation) return spans;
  const int64_t end_ns = spans[0].end_ns;
  int64_t now_ns = spans[0].start_ns;
  const auto add_phase = [&](const char* name, const std::optional<double>& seconds) {
    if (!seconds) return;
    Span span;
    span.trace_id = record.trace.trace_id;
    span.span_id = random_span_id();
    span.parent_span_id = record.trace.span_id;
    span.trace_state = record.trace.trace_state;
    span.name = name;
    span.start_ns = now_ns;
    now_ns = std::min(now_ns + nanoseconds(*seconds), end_ns);
    span.end_ns = now_ns;
    spans.push_back(std::move(span));
  };
  add_phase("validate", record.validation_s);
  add_phase("queue", record.queue_s);
  add_phase("prefill", record.prefill_s);
  add_phase("decode", record.decode_s);
  return spans;
}

std::string encode_traces(const std::vector<Span>& spans, const std::string& service_name) {
  OrderedJson list = OrderedJson::array();
  for (const Span& span : spans) list.push_back(to_json(span));
  const Attributes resource = {{"service.name", service_name},
                               {"service.version", std::string(ipc::kVersion)},
                               {"process.pid", int64_t{::getpid()}}};
  const OrderedJson scope = {{"name", "tgi.http"}, {"version", ipc::kVersion}};
  OrderedJson scope_spans = OrderedJson::array();
  scope_spans.push_back({{"scope", scope}, {"spans", std::move(list)}});
  OrderedJson resource_spans = OrderedJson::array();
  resource_spans.push_back(
      {{"resource", {{"attributes", to_json(resource)}}}, {"scopeSpans", std::move(scope_spans)}});
  const OrderedJson body = {{"resourceSpans", std::move(resource_spans)}};
  return body.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace tgi::http
