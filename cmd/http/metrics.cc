#include "cmd/http/metrics.h"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <string_view>
#include <utility>

#include "base/histogram.h"
#include "base/shared_histogram.h"
#include "cmd/http/engine_families.h"
#include "cmd/http/lorax_metrics.h"
#include "cmd/http/process_metrics.h"

namespace tgi::http {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

std::vector<double> token_bounds(int64_t limit) {
  return Histogram::linear(static_cast<double>(limit), 100);
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
  constexpr std::array<std::string_view, 5> kMethods = {"GET", "POST", "DELETE", "HEAD", "OPTIONS"};
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

struct NamedHistogram {
  const char* name;
  const char* help;
  SharedHistogram buckets;

  void observe(double value) noexcept { buckets.observe(value); }

  MetricFamily family() const {
    ClientMetric metric;
    metric.histogram = to_prometheus(buckets.snapshot());
    return {.name = name, .help = help, .type = MetricType::Histogram, .metric = {metric}};
  }
};

NamedHistogram durations(const char* name, const char* help) {
  return {name, help, SharedHistogram(duration_bounds())};
}

}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;

  prometheus::Counter& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
  }

  explicit Families(const MetricsOptions& options)
      : input_length{"tgi_request_input_length", "Prompt tokens per request",
                     SharedHistogram(token_bounds(options.max_input_tokens))},
        max_new_tokens{"tgi_request_max_new_tokens", "Tokens a request may generate",
                       SharedHistogram(token_bounds(options.max_total_tokens))},
        generated_tokens{"tgi_request_generated_tokens", "Generated tokens per request",
                         SharedHistogram(token_bounds(options.max_total_tokens))} {
    for (const auto& [value, name] : kFailures) failure.Add({{"err", std::string(name)}});
    for (const auto& [value, name] : kFailures) lorax_failure.Add({{"err", std::string(name)}});
    for (const std::string_view name : kAdapterFailures) {
      lorax_failure.Add({{"err", std::string(name)}});
    }
    for (const char* phase : {"queue", "prefill", "decode"}) cancelled.Add({{"phase", phase}});
  }

  prometheus::Counter& count = counter("tgi_request_count", "Requests to generate");
  prometheus::Counter& success = counter("tgi_request_success", "Requests answered in full");
  prometheus::Family<prometheus::Counter>& failure =
      prometheus::BuildCounter()
          .Name("tgi_request_failure")
          .Help("Requests not answered in full, by what failed")
          .Register(registry);
  prometheus::Registry lorax_registry;
  prometheus::Family<prometheus::Counter>& lorax_failure =
      prometheus::BuildCounter()
          .Name(std::string(kLoraxFailures))
          .Help("Requests not answered in full, by what failed, adapters apart")
          .Register(lorax_registry);
  prometheus::Family<prometheus::Counter>& cancelled =
      prometheus::BuildCounter()
          .Name("tgi_cancelled")
          .Help("Requests whose client left, by what they were doing")
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

  NamedHistogram duration = durations("tgi_request_duration", "Seconds, arrival to end");
  NamedHistogram validation =
      durations("tgi_request_validation_duration", "Seconds, arrival until queued");
  NamedHistogram queue =
      durations("tgi_request_queue_duration", "Seconds, queued until the first step");
  NamedHistogram inference =
      durations("tgi_request_inference_duration", "Seconds, first step until done");
  NamedHistogram time_per_token = durations("tgi_request_mean_time_per_token_duration",
                                            "Seconds of inference per generated token");
  NamedHistogram first_token = durations("tgi_request_time_to_first_token",
                                         "Seconds, arrival at the socket until the first token");
  NamedHistogram token_gap = durations("tgi_request_inter_token_latency",
                                       "Seconds between two tokens written to a stream");
  std::atomic<uint64_t> num_skipped{0};  // tokens of streams that were drafted
  NamedHistogram input_length;
  NamedHistogram max_new_tokens;
  NamedHistogram generated_tokens;

  std::vector<MetricFamily> histogram_families() const {
    std::vector<MetricFamily> out;
    for (const NamedHistogram* each :
         {&duration, &validation, &queue, &inference, &time_per_token, &first_token, &token_gap,
          &input_length, &max_new_tokens, &generated_tokens}) {
      out.push_back(each->family());
    }
    return out;
  }
};

Metrics::Metrics(MetricsOptions options)
    : options_(checked(std::move(options))), families_(std::make_unique<Families>(options_)) {}

Metrics::~Metrics() = default;

void Metrics::request_started() noexcept {
  families_->count.Increment();
  families_->running.Increment();
}

void Metrics::first_token(double seconds) noexcept {
  families_->first_token.observe(std::max(seconds, 0.0));
}

void Metrics::token_gap(double seconds) noexcept {
  families_->token_gap.observe(seconds > 0 ? seconds : 0);  // a NaN too becomes 0
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
    to.input_length.observe(static_cast<double>(*record.num_prompt_tokens));
  }
  if (record.max_new_tokens) to.max_new_tokens.observe(static_cast<double>(*record.max_new_tokens));
  if (!record.cancelled_phase.empty()) {
    to.cancelled.Add({{"phase", record.cancelled_phase}}).Increment();
  }
  if (record.stream) {
    to.num_skipped += static_cast<uint64_t>(record.num_skipped_tokens.value_or(0));
  }
  const Failure failure = failure_of(record);
  if (failure != Failure::kNone) {
    to.failure.Add({{"err", std::string(failure_name(failure))}}).Increment();
    to.lorax_failure.Add({{"err", lorax_failure_name(record)}}).Increment();
    return;
  }
  // Like TGI's, these are of requests that succeeded.
  to.success.Increment();
  to.duration.observe(record.total_s);
  if (record.validation_s) to.validation.observe(*record.validation_s);
  if (record.queue_s) to.queue.observe(*record.queue_s);
  if (record.inference_s) to.inference.observe(*record.inference_s);
  if (!record.num_generated_tokens) return;
  const double num_generated = static_cast<double>(*record.num_generated_tokens);
  to.generated_tokens.observe(num_generated);
  if (record.inference_s && num_generated > 0) {
    to.time_per_token.observe(*record.inference_s / num_generated);
  }
}

namespace {

// TGI's tgi_request_skipped_tokens, which it observes once per step and sequence: tokens that
// speculation gained.
MetricFamily skipped_tokens(uint64_t num_tokens, uint64_t num_skipped) {
  ClientMetric skipped;
  skipped.summary.sample_count = num_tokens - std::min(num_skipped, num_tokens);
  skipped.summary.sample_sum = static_cast<double>(num_skipped);
  return {.name = "tgi_request_skipped_tokens",
          .help = "Tokens gained by speculation per step of a sequence",
          .type = MetricType::Summary,
          .metric = {skipped}};
}

void add_trace_families(const TraceCounts& counts, std::vector<MetricFamily>& out) {
  out.push_back(single("tgi_trace_spans_exported", "Spans the collector took", MetricType::Counter,
                       static_cast<double>(counts.num_exported)));
  MetricFamily dropped = single("tgi_trace_spans_dropped", "Spans that were lost, by reason",
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
  uint64_t num_tokens = 0;  // that were streamed
  for (MetricFamily& family : families_->histogram_families()) {
    if (family.name == families_->token_gap.name || family.name == families_->first_token.name) {
      num_tokens += family.metric[0].histogram.sample_count;
    }
    families.push_back(std::move(family));
  }
  families.push_back(skipped_tokens(num_tokens, families_->num_skipped));
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
  if (options_.has_adapters && options_.has_adapters()) {
    add_lorax_families(families);
    for (MetricFamily& family : families_->lorax_registry.Collect()) {
      families.push_back(std::move(family));
    }
  }
  std::sort(families.begin(), families.end(),
            [](const MetricFamily& a, const MetricFamily& b) { return a.name < b.name; });
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace tgi::http
