// The gateway's metrics in Prometheus' text format: TGI's tgi_* names, our own beside them, the
// process's, and those of the daemon passed through; LoRAX's names where there are adapters.
// docs/metrics.md lists every name.
//
// Every request to generate is counted once, whatever its route: request_started(), then
// first_token() and token_gap() while it streams, then observe() when it ends. Every other request
// gets observe() alone.
//
// Thread-safe. token_gap() takes no lock and no allocation (see base/shared_histogram.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmd/http/otlp_exporter.h"
#include "cmd/http/request_record.h"
#include "ipc/protocol.h"

namespace tgi::http {

// What the daemon's `metrics` method answered.
using EngineReport = std::vector<ipc::MetricFamily>;

struct MetricsOptions {
  // The limits of the model served: the last bucket of the token histograms, as in TGI.
  int64_t max_input_tokens = 0;
  int64_t max_total_tokens = 0;
  std::function<TraceCounts()> trace_counts;  // (optional) of the exporter; default: no such rows
  // Whether LoRAX's names are there beside TGI's. (optional; default: they are not)
  std::function<bool()> has_adapters{};
};

class Metrics {
 public:
  // Throws kInvalidArgument when a limit is not positive.
  explicit Metrics(MetricsOptions options);
  ~Metrics();

  // Once per request with RequestRecord::is_generation, when it reaches its handler.
  void request_started() noexcept;

  // For streams: from the request's arrival at the socket until its first token was written to it.
  void first_token(double seconds) noexcept;

  // The time from one token written to a stream to the next; with n choices in one stream, within a
  // choice.
  void token_gap(double seconds) noexcept;

  // Once per request, when it has ended.
  void observe(const RequestRecord& record);

  // The page for GET /metrics. Without a report (the daemon does not answer) tgi_engine_up is 0
  // and the daemon's families are not there. A family of the daemon that has a name of ours, or is
  // malformed, is left out and counted by tgi_engine_families_refused.
  std::string scrape(const std::optional<EngineReport>& engine) const;

  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct Families;
  const MetricsOptions options_;
  const std::unique_ptr<Families> families_;
};

}  // namespace tgi::http
