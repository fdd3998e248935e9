#include "cmd/http/metrics.h"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string_view>
#include <utility>

#include "base/histogram.h"
#include "cmd/http/duration_histogram.h"
#include "cmd/http/engine_families.h"
#include "cmd/http/process_metrics.h"

namespace tgi::http {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// TGI's buckets of everything that ends in _duration; ours take the same.
std::vector<double> duration_bounds() {
  return Histogram::geometric(0.00015, 1.5, 35);
}

std::vector<double> linear_bounds(int64_t limit) {
  std::vector<double> bounds;
  for (int i = 1; i <= 100; ++i) bounds.push_back(static_cast<double>(limit) / 100 * i);
  return bounds;
}

MetricsOptions checked(MetricsOptions options) {
  if (options.max_input_tokens <= 0 || options.max_total_tokens <= 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("metrics: expected limits above 0, got max_input_tokens {} and "
                            "max_total_tokens {}",
                            options.max_input_tokens, options.max_total_tokens));
  }
  return options;
}

// Methods come from clients: a label must not take any value they like.
std::string method_label(const std::string& method) {
  constexpr std::array<std::string_view, 4> kMethods = {"GET", "POST", "HEAD", "OPTIONS"};
  const bool known = std::find(kMethods.begin(), kMethods.end(), method) != kMethods.end();
  return known ? method : "other";
}

MetricFamily single(const char* name,
                    const char* help,
                    MetricType type,
                    double value,
                    std::vector<ClientMetric::Label> labels = {}) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = value;
  metric.gauge.value = value;
  return {.name = name, .help = help, .type = type, .metric = {std::move(metric)}};
}

}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;

  prometheus::Counter& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
  }
  prometheus::Histogram& histogram(const char* name, const char* help, std::vector<double> bounds) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, bounds);
  }
  prometheus::Histogram& durations(const char* name, const char* help) {
    return histogram(name, help, duration_bounds());
  }

  explicit Families(const MetricsOptions& options)
      : input_length(histogram("tgi_request_input_length",
                               "Prompt tokens per request",
                               linear_bounds(options.max_input_tokens))),
        max_new_tokens(histogram("tgi_request_max_new_tokens",
                                 "Tokens a request may generate",
                                 linear_bounds(options.max_total_tokens))),
        generated_tokens(histogram("tgi_request_generated_tokens",
                                   "Generated tokens per request",
                                   linear_bounds(options.max_total_tokens))) {
    for (const auto& [value, name] : kFailures) failure.Add({{"err", std::string(name)}});
    for (const char* phase : {"queue", "prefill", "decode"}) cancelled.Add({{"phase", phase}});
  }

  prometheus::Counter& count = counter("tgi_request_count", "Requests to generate");
  prometheus::Counter& success = counter("tgi_request_success", "Requests answered in full");
  prometheus::Family<prometheus::Counter>& failure =
      prometheus::BuildCounter()
          .Name("tgi_request_failure")
          .Help("Requests not answered in full, by what failed")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& cancelled =
      prometheus::BuildCounter()
          .Name("tgi_cancelled")
          .Help("Requests whose client left, by what they were at")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& http_requests =
      prometheus::BuildCounter()
          .Name("tgi_http_requests")
          .Help("HTTP requests of all kinds, by route, method and status")
          .Register(registry);
  prometheus::Gauge& running = prometheus::BuildGauge()
                                   .Name("tgi_requests_running")
                                   .Help("Requests to generate that the gateway holds now")
                                   .Register(registry)
                                   .Add({});

  prometheus::Histogram& duration = durations("tgi_request_duration", "Seconds, arrival to end");
  prometheus::Histogram& validation =
      durations("tgi_request_validation_duration", "Seconds, arrival until queued");
  prometheus::Histogram& queue =
      durations("tgi_request_queue_duration", "Seconds, queued until the first step");
  prometheus::Histogram& inference =
      durations("tgi_request_inference_duration", "Seconds, first step until done");
  prometheus::Histogram& time_per_token = durations("tgi_request_mean_time_per_token_duration",
                                                    "Seconds of inference per generated token");
  prometheus::Histogram& first_token = durations(
      "tgi_request_time_to_first_token", "Seconds, arrival at the socket until the first token");
  prometheus::Histogram& input_length;
  prometheus::Histogram& max_new_tokens;
  prometheus::Histogram& generated_tokens;

  DurationHistogram token_gap{duration_bounds()};
};

Metrics::Metrics(MetricsOptions options)
    : options_(checked(std::move(options))), families_(std::make_unique<Families>(options_)) {}

Metrics::~Metrics() = default;

void Metrics::request_started() noexcept {
  families_->count.Increment();
  families_->running.Increment();
}

void Metrics::first_token(double seconds) noexcept {
  families_->first_token.Observe(std::max(seconds, 0.0));
}

void Metrics::token_gap(double seconds) noexcept {
  families_->token_gap.observe(seconds);
}

void Metrics::observe(const RequestRecord& record) {
  Families& to = *families_;
  to.http_requests
      .Add({{"route", record.route.empty() ? "other" : record.route},
            {"method", method_label(record.method)},
            {"status", std::to_string(record.status)}})
      .Increment();
  if (!record.is_generation) return;
  to.running.Decrement();
  if (record.num_prompt_tokens) {
    to.input_length.Observe(static_cast<double>(*record.num_prompt_tokens));
  }
  if (record.max_new_tokens) to.max_new_tokens.Observe(static_cast<double>(*record.max_new_tokens));
  if (!record.cancelled_phase.empty()) {
    to.cancelled.Add({{"phase", record.cancelled_phase}}).Increment();
  }
  const Failure failure = failure_of(record);
  if (failure != Failure::kNone) {
    to.failure.Add({{"err", std::string(failure_name(failure))}}).Increment();
    return;
  }
  // Like TGI's, these are of requests that succeeded.
  to.success.Increment();
  to.duration.Observe(record.total_s);
  if (record.validation_s) to.validation.Observe(*record.validation_s);
  if (record.queue_s) to.queue.Observe(*record.queue_s);
  if (record.inference_s) to.inference.Observe(*record.inference_s);
  if (!record.num_generated_tokens) return;
  const double num_generated = static_cast<double>(*record.num_generated_tokens);
  to.generated_tokens.Observe(num_generated);
  if (record.inference_s && num_generated > 0) {
    to.time_per_token.Observe(*record.inference_s / num_generated);
  }
}

namespace {

// What the token path counted, and TGI's tgi_request_skipped_tokens, which it observes once per
// step and sequence: tokens that speculation gained. There is no speculation, so each is 0.
void add_token_families(const DurationHistogram& token_gap,
                        const prometheus::Histogram& first_token,
                        std::vector<MetricFamily>& out) {
  const ClientMetric gaps = token_gap.collect();
  ClientMetric skipped;
  skipped.summary.sample_count =
      gaps.histogram.sample_count + first_token.Collect().histogram.sample_count;
  out.push_back({.name = "tgi_request_inter_token_latency",
                 .help = "Seconds between two tokens written to a stream",
                 .type = MetricType::Histogram,
                 .metric = {gaps}});
  out.push_back({.name = "tgi_request_skipped_tokens",
                 .help = "Tokens gained by speculation per streamed token: there is none",
                 .type = MetricType::Summary,
                 .metric = {skipped}});
}

void add_trace_families(const TraceCounts& counts, std::vector<MetricFamily>& out) {
  out.push_back(single("tgi_trace_spans_exported", "Spans the collector took", MetricType::Counter,
                       static_cast<double>(counts.num_exported)));
  MetricFamily dropped = single("tgi_trace_spans_dropped", "Spans that were lost, by why",
                                MetricType::Counter, static_cast<double>(counts.num_queue_full),
                                {{.name = "reason", .value = "queue_full"}});
  ClientMetric refused;
  refused.label = {{.name = "reason", .value = "refused"}};
  refused.counter.value = static_cast<double>(counts.num_refused);
  ClientMetric unreachable;
  unreachable.label = {{.name = "reason", .value = "unreachable"}};
  unreachable.counter.value = static_cast<double>(counts.num_unreachable);
  dropped.metric.push_back(std::move(refused));
  dropped.metric.push_back(std::move(unreachable));
  out.push_back(std::move(dropped));
}

// Adds those whose names are not yet there; returns how many were refused.
int add_engine_families(const EngineReport& report, std::vector<MetricFamily>& out) {
  std::set<std::string> names;
  for (const MetricFamily& family : out) names.insert(family.name);
  int num_refused = 0;
  for (const ipc::MetricFamily& family : report) {
    std::optional<MetricFamily> converted = to_prometheus(family);
    if (converted && names.insert(converted->name).second) {
      out.push_back(std::move(*converted));
    } else {
      ++num_refused;
    }
  }
  return num_refused;
}

}  // namespace

std::string Metrics::scrape(const std::optional<EngineReport>& engine) const {
  std::vector<MetricFamily> families = families_->registry.Collect();
  add_token_families(families_->token_gap, families_->first_token, families);
  for (MetricFamily& family : process_metrics()) families.push_back(std::move(family));
  if (options_.trace_counts) add_trace_families(options_.trace_counts(), families);
  families.push_back(single("tgi_build_info", "Always 1; the version is a label", MetricType::Gauge,
                            1, {{.name = "version", .value = std::string(ipc::kVersion)}}));
  families.push_back(single("tgi_engine_up", "1 when the daemon answered this scrape",
                            MetricType::Gauge, engine ? 1 : 0));
  const size_t refused = families.size();
  families.push_back(single("tgi_engine_families_refused",
                            "Families of the daemon left out of this scrape: malformed, or with "
                            "a name of the gateway's",
                            MetricType::Gauge, 0));
  if (engine) families[refused].metric[0].gauge.value = add_engine_families(*engine, families);
  std::sort(families.begin(), families.end(),
            [](const MetricFamily& a, const MetricFamily& b) { return a.name < b.name; });
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace tgi::http
