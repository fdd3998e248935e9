#include "cmd/http/tracing.h"

#include <limits>

#include "base/nlohmann_json.h"
#include "cmd/http/log_text.h"
#include "sample_record.h"
#include "tests/catch.h"

namespace tgi::http {
namespace {

using Json = nlohmann::json;

constexpr int64_t kStart = 1'767'323'045'500'000'000;
constexpr int64_t kMs = 1'000'000;

// The value of an attribute in OTLP's JSON; null when it is not there.
Json attribute(const Json& span, const std::string& key) {
  for (const Json& item : span["attributes"]) {
    if (item["key"] == key) return item["value"];
  }
  return nullptr;
}

Json encoded_spans(const RequestRecord& record) {
  const Json body = Json::parse(encode_traces(request_spans(record), "svc"));
  return body["resourceSpans"][0]["scopeSpans"][0]["spans"];
}

}  // namespace

TEST_CASE("spans: phases follow each other below the server span") {
  RequestRecord record = sample_record();
  record.trace_in = TraceContext{.trace_id = record.trace.trace_id, .span_id = "00f067aa0ba902b7"};
  record.trace.trace_state = "a=1";
  const std::vector<Span> spans = request_spans(record);
  REQUIRE(spans.size() == 5);
  CHECK(spans[0].name == "POST /generate_stream");
  CHECK(spans[0].kind == SpanKind::kServer);
  CHECK(spans[0].span_id == record.trace.span_id);
  CHECK(spans[0].parent_span_id == "00f067aa0ba902b7");
  CHECK(spans[0].start_ns == kStart);
  CHECK(spans[0].end_ns == kStart + 126 * kMs);

  const std::vector<std::pair<std::string, int64_t>> phases = {
      {"validate", 2}, {"queue", 5}, {"prefill", 25}, {"decode", 125}};
  int64_t begin = kStart;
  for (size_t i = 0; i < phases.size(); ++i) {
    const Span& span = spans[i + 1];
    CHECK(span.name == phases[i].first);
    CHECK(span.kind == SpanKind::kInternal);
    CHECK(span.parent_span_id == record.trace.span_id);
    CHECK(span.start_ns == begin);
    begin = kStart + phases[i].second * kMs;
    CHECK(span.end_ns == begin);
  }
  for (const Span& span : spans) {
    CHECK(span.trace_id == record.trace.trace_id);
    CHECK(span.trace_state == "a=1");
    CHECK(span.status == SpanStatus::kUnset);
  }
  CHECK(spans[1].span_id != spans[2].span_id);
}

TEST_CASE("spans: none when the caller does not sample") {
  RequestRecord record = sample_record();
  record.trace.sampled = false;
  CHECK(request_spans(record).empty());
}

TEST_CASE("spans: only phases that were reached, never past the end of the request") {
  RequestRecord record = sample_record();
  record.prefill_s.reset();
  record.decode_s.reset();
  record.queue_s = 99;
  const std::vector<Span> spans = request_spans(record);
  REQUIRE(spans.size() == 3);
  CHECK(spans[2].name == "queue");
  CHECK(spans[2].end_ns == spans[0].end_ns);
}

TEST_CASE("spans: a health check is one span without a model") {
  RequestRecord record;
  record.method = "GET";
  record.route = "/health";
  record.status = 200;
  record.trace = child_of(std::nullopt);
  const Json spans = encoded_spans(record);
  REQUIRE(spans.size() == 1);
  CHECK(spans[0]["name"] == "GET /health");
  CHECK(attribute(spans[0], "gen_ai.request.model").is_null());
  CHECK(attribute(spans[0], "tgi.stream").is_null());
}

TEST_CASE("spans: the server's errors are errors, the client's are not") {
  const auto status_of = [](int status, Failure failure) {
    RequestRecord record = sample_record();
    record.status = status;
    record.failure = failure;
    return request_spans(record)[0].status;
  };
  CHECK(status_of(422, Failure::kValidation) == SpanStatus::kUnset);
  CHECK(status_of(429, Failure::kOverloaded) == SpanStatus::kUnset);
  CHECK(status_of(499, Failure::kDropped) == SpanStatus::kUnset);
  CHECK(status_of(424, Failure::kGeneration) == SpanStatus::kError);
  CHECK(status_of(502, Failure::kNone) == SpanStatus::kError);
  CHECK(status_of(200, Failure::kIncomplete) == SpanStatus::kError);  // failed while it streamed
}

TEST_CASE("otlp: ids are hex, nanoseconds and integers strings, enumerators numbers") {
  RequestRecord record = sample_record();
  record.failure = Failure::kGeneration;
  record.error_type = "generation";
  const Json body = Json::parse(encode_traces(request_spans(record), "svc"));
  REQUIRE(body.size() == 1);
  const Json& group = body["resourceSpans"][0];
  CHECK(group["resource"]["attributes"][0] ==
        Json{{"key", "service.name"}, {"value", {{"stringValue", "svc"}}}});
  CHECK(group["scopeSpans"][0]["scope"]["name"] == "tgi.http");
  const Json& span = group["scopeSpans"][0]["spans"][0];
  CHECK(span["traceId"] == "0af7651916cd43dd8448eb211c80319c");
  CHECK(span["spanId"] == "b7ad6b7169203331");
  CHECK_FALSE(span.contains("parentSpanId"));
  CHECK_FALSE(span.contains("traceState"));
  CHECK(span["kind"] == 2);
  CHECK(span["startTimeUnixNano"] == "1767323045500000000");
  CHECK(span["endTimeUnixNano"] == "1767323045626000000");
  CHECK(span["status"] == Json{{"code", 2}});
  CHECK(attribute(span, "http.response.status_code") == Json{{"intValue", "200"}});
  CHECK(attribute(span, "http.route") == Json{{"stringValue", "/generate_stream"}});
  CHECK(attribute(span, "error.type") == Json{{"stringValue", "generation"}});
  CHECK(attribute(span, "gen_ai.usage.input_tokens") == Json{{"intValue", "40"}});
  CHECK(attribute(span, "gen_ai.usage.output_tokens") == Json{{"intValue", "24"}});
  CHECK(attribute(span, "gen_ai.response.finish_reasons") ==
        Json{{"arrayValue", {{"values", Json::array({Json{{"stringValue", "length"}}})}}}});
  CHECK(attribute(span, "tgi.stream") == Json{{"boolValue", true}});
  CHECK(attribute(span, "tgi.time_to_first_token") == Json{{"doubleValue", 0.0255}});
  CHECK(attribute(span, "total_time") == Json{{"stringValue", "126ms"}});
  CHECK(attribute(span, "queue_time") == Json{{"stringValue", "3ms"}});
  CHECK(attribute(span, "time_per_token") == Json{{"stringValue", "5ms"}});
  CHECK(attribute(span, "seed") == Json{{"stringValue", "7"}});
}

TEST_CASE("otlp: what the client chose is cut and escaped") {
  RequestRecord record = sample_record();
  record.request_id = std::string(5000, 'x') + "\n";
  record.method = "BR\xff\xfe";
  record.model = std::string("a\0b", 3);
  const Json span = encoded_spans(record)[0];
  CHECK(span["name"] == "BR\\xff\\xfe /generate_stream");
  CHECK(attribute(span, "tgi.request_id")["stringValue"].get<std::string>().size() == 131);
  CHECK(attribute(span, "gen_ai.request.model") == Json{{"stringValue", "a\\x00b"}});
}

TEST_CASE("durations look as Rust prints them") {
  CHECK(format_duration(0) == "0ns");
  CHECK(format_duration(-1) == "0ns");
  CHECK(format_duration(std::numeric_limits<double>::quiet_NaN()) == "0ns");
  CHECK(format_duration(7e-9) == "7ns");
  CHECK(format_duration(1.5e-6) == "1.5µs");
  CHECK(format_duration(999.999e-6) == "999.999µs");
  CHECK(format_duration(1e-3) == "1ms");
  CHECK(format_duration(20.25e-3) == "20.25ms");
  CHECK(format_duration(1) == "1s");
  CHECK(format_duration(1.000000001) == "1.000000001s");
  CHECK(format_duration(61.05) == "61.05s");
}

}  // namespace tgi::http
