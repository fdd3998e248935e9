// Sends the spans of requests to an OpenTelemetry collector: OTLP over HTTP with JSON bodies, POST
// ENDPOINT/v1/traces. One thread of its own sends batches; a request only appends to a bounded
// queue, and when that is full its spans are dropped and counted. By OTLP's rules 429, 502, 503,
// 504 and a collector that can't be reached are tried again with growing pauses, any other refusal
// is final. Proxies of the environment are not used; redirects are not followed.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cmd/http/tracing.h"

namespace tgi::http {

// --otlp-endpoint as the URL to post to: "http://host:4318" gets "/v1/traces" behind its path; a
// path that already ends with it stays. Throws kInvalidArgument for anything but http(s)://HOST,
// for a user, query or fragment, and for port 4317 without that path: it is where collectors speak
// gRPC, as TGI does and tgi does not.
std::string otlp_traces_url(const std::string& endpoint);

struct TraceCounts {  // spans
  int64_t num_exported = 0;
  int64_t num_queue_full = 0;   // dropped: more than max_queued_spans waited
  int64_t num_refused = 0;      // by the collector, for good
  int64_t num_unreachable = 0;  // given up after max_attempts, or at the end of the flush
};

struct OtlpOptions {
  std::string endpoint;
  std::string service_name = "text-generation-inference.router";
  size_t max_queued_spans = 8192;
  size_t max_batch_spans = 512;
  std::chrono::milliseconds batch_delay{1000};  // how long a span waits for others
  std::chrono::milliseconds timeout{10'000};    // of one attempt
  std::chrono::milliseconds first_pause{500};   // between attempts; doubles
  std::chrono::milliseconds max_pause{30'000};
  int max_attempts = 6;
  std::chrono::milliseconds flush_timeout{2000};  // of the destructor
  // (optional) When the collector stops taking spans, with the reason, and when it takes them
  // again, with "". On the sending thread. Default: nothing.
  std::function<void(const std::string& trouble)> on_trouble;
};

class OtlpExporter {
 public:
  // Throws like otlp_traces_url.
  explicit OtlpExporter(OtlpOptions options);
  ~OtlpExporter();  // shutdown(flush_timeout)

  // Never waits for the collector. A request's spans are taken or dropped together.
  void add(const RequestRecord& record);

  // Sends what is queued until the time is up, drops the rest, ends the thread. Later spans are
  // dropped. Not by two threads at once.
  void shutdown(std::chrono::milliseconds flush_timeout);

  TraceCounts counts() const;

 private:
  using Clock = std::chrono::steady_clock;
  class Http;
  enum class Outcome { kTaken, kRefused, kTryAgain };

  void run();
  std::vector<Span> next_batch();
  void deliver(const std::vector<Span>& batch);
  Outcome attempt(const std::string& body, int64_t& num_rejected, std::chrono::milliseconds& pause);
  bool pause_for(std::chrono::milliseconds pause);
  void report(const std::string& trouble);

  const OtlpOptions options_;
  const std::unique_ptr<Http> http_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Span> queue_;                                    // guarded by mutex_
  TraceCounts counts_;                                        // guarded by mutex_
  bool stopping_ = false;                                     // guarded by mutex_
  Clock::time_point oldest_queued_;                           // guarded by mutex_
  Clock::time_point flush_until_ = Clock::time_point::max();  // guarded by mutex_

  std::string trouble_;  // last reported; of the sending thread
  std::jthread thread_;
};

}  // namespace tgi::http
