// What the gateway knows of one HTTP request when it ends: the one source of its metrics, its log
// line and its trace. A plain value; the handler that owns the request fills it in.
//
// Durations are in seconds, by a steady clock; absent means that the request never came that far.
// They follow each other: arrival |validation| queue |prefill| decode |, and
// inference = prefill + decode. Strings marked untrusted come from the client.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmd/http/trace_context.h"

namespace tgi::http {

// Why a request to generate was not answered in full; the names are TGI's `err` labels.
enum class Failure {
  kNone,
  kOverloaded,  // no permit: 429
  kValidation,  // the request breaks a rule: 4xx
  kGeneration,  // the daemon failed it, refused it or went away
  kIncomplete,  // the daemon's answer ended without its last event
  kDropped,     // the client left or read too slowly
  kTemplate,    // the chat template refused the messages, or there is none
};

inline constexpr std::array<std::pair<Failure, std::string_view>, 6> kFailures = {{
    {Failure::kOverloaded, "overloaded"},
    {Failure::kValidation, "validation"},
    {Failure::kGeneration, "generation"},
    {Failure::kIncomplete, "incomplete"},
    {Failure::kDropped, "dropped"},
    {Failure::kTemplate, "template"},
}};

constexpr std::string_view failure_name(Failure failure) {
  for (const auto& [value, name] : kFailures) {
    if (value == failure) return name;
  }
  return "";
}

struct RequestRecord {
  std::string request_id;  // untrusted when the client chose it
  std::string method;      // untrusted
  std::string route;       // of the route table ("/generate"), never the path; "": no such route
  std::string path;        // untrusted; told in the log alone, and only when there is no route
  std::string model;       // untrusted; for metrics never
  std::string adapter;     // untrusted; likewise; "": none
  std::string adapter_source;  // where it is looked for: "hub", "local", "s3"
  int status = 0;              // as sent; 499 when the client left before anything was
  std::string error_type;      // TGI's tag: "validation", "incomplete_generation"...; "": none
  std::chrono::system_clock::time_point started_at;  // arrival at the socket
  double total_s = 0;                                // arrival until the last byte was written

  // Set together with Metrics::request_started(): the request reached a handler that generates,
  // past routing, key and body checks. What follows is of such requests alone.
  bool is_generation = false;
  bool stream = false;
  Failure failure = Failure::kNone;
  std::string adapter_failure;  // of Failure::kGeneration: "", "download_adapter", "load_adapter"
  std::string cancelled_phase;  // "", "queue", "prefill", "decode"; implies Failure::kDropped
  std::vector<std::string> finish_reasons;  // one per choice, as told to the client

  std::optional<double> validation_s;           // arrival until handed to the daemon's queue
  std::optional<double> queue_s;                // until its first step
  std::optional<double> prefill_s;              // until the first token was there
  std::optional<double> decode_s;               // until the last token was there
  std::optional<double> inference_s;            // first step until done
  std::optional<double> time_to_first_token_s;  // arrival until the first token was written
  std::optional<int64_t> num_prompt_tokens;
  std::optional<int64_t> num_cached_tokens;     // of the prompt
  std::optional<int64_t> num_generated_tokens;  // of all choices together
  std::optional<int64_t> num_skipped_tokens;    // of them: drafted
  std::optional<int64_t> max_new_tokens;        // as asked, or all that fits
  int64_t best_of = 1;
  int64_t n = 1;
  std::optional<uint64_t> seed;

  std::optional<TraceContext> trace_in;  // of the client's headers
  TraceContext trace;                    // of this request's own span: child_of(trace_in)
};

// What to count the request as. A handler that only set the status is understood too, so that an
// error never counts as a success.
inline Failure failure_of(const RequestRecord& record) {
  if (!record.cancelled_phase.empty() || record.status == 499) return Failure::kDropped;
  if (record.failure != Failure::kNone || record.status < 400) return record.failure;
  if (record.status == 429) return Failure::kOverloaded;
  return record.status >= 500 || record.status == 424 ? Failure::kGeneration : Failure::kValidation;
}

}  // namespace tgi::http
