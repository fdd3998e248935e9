// The spans of one HTTP request and their form on the wire: OTLP as JSON
// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding). Pure functions; sending is
// otlp_exporter.h's.
//
//   POST /generate                 server span: route, status, tokens, TGI's field names
//     validate  queue  prefill  decode    one after the other, as far as the request came
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cmd/http/request_record.h"

namespace tgi::http {

using AttributeValue = std::variant<std::string, int64_t, double, bool, std::vector<std::string>>;
using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

enum class SpanKind { kInternal = 1, kServer = 2 };         // OTLP's numbers
enum class SpanStatus { kUnset = 0, kOk = 1, kError = 2 };  // OTLP's numbers

struct Span {
  std::string trace_id;
  std::string span_id;
  std::string parent_span_id;  // "": a root
  std::string trace_state;
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  int64_t start_ns = 0;  // since 1970
  int64_t end_ns = 0;
  Attributes attributes;
  SpanStatus status = SpanStatus::kUnset;
};

// The server span and its children; empty when the client asked not to sample. Children lie within
// the server span.
std::vector<Span> request_spans(const RequestRecord& record);

// The body of POST /v1/traces. Strings that are not UTF-8 are mended.
std::string encode_traces(const std::vector<Span>& spans, const std::string& service_name);

}  // namespace tgi::http
