// W3C Trace Context, level 1 (https://www.w3.org/TR/trace-context-1/): the traceparent and
// tracestate headers. Exact: what is malformed counts as absent, as the standard asks. No threads.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tgi::http {

// One span as others refer to it.
struct TraceContext {
  std::string trace_id;       // 32 lower-case hex digits, not all zero
  std::string span_id;        // 16 lower-case hex digits, not all zero
  bool sampled = true;        // false: the caller records nothing, and neither do we
  std::string trace_state{};  // other vendors' entries, handed on as they came; may be empty
};

// A traceparent header. A version above 00 is read as far as version 00 goes.
std::optional<TraceContext> parse_traceparent(std::string_view header);

// A tracestate header (several ones joined by commas): its entries without empty ones and outer
// spaces, at most 512 characters of whole entries. Nothing when any entry is malformed, a key
// comes twice or there are more than 32.
std::optional<std::string> parse_tracestate(std::string_view header);

// All headers of a request. Without exactly one valid traceparent there is no context; a malformed
// tracestate is left out.
std::optional<TraceContext> read_trace_context(std::span<const std::string> traceparents,
                                               std::span<const std::string> tracestates);

// A new span below `parent`; without one it begins a new, sampled trace.
TraceContext child_of(const std::optional<TraceContext>& parent);

// "00-<trace>-<span>-01".
std::string to_traceparent(const TraceContext& context);

// 16 lower-case hex digits, not all zero, from the system's generator.
std::string random_span_id();

}  // namespace tgi::http
