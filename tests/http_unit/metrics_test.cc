#include "cmd/http/metrics.h"

#include <fcntl.h>

#include <cmath>
#include <ctime>
#include <thread>

#include "base/unique_fd.h"
#include "sample_record.h"
#include "scrape.h"
#include "tests/catch.h"

namespace tgi::http {
namespace {

Metrics make_metrics() {
  return Metrics({.max_input_tokens = 1000, .max_total_tokens = 2000, .trace_counts = {}});
}

Scrape scrape_of(const Metrics& metrics, const std::optional<EngineReport>& engine = {}) {
  return parse_scrape(metrics.scrape(engine));
}

double metric(const Metrics& metrics, const std::string& sample) {
  return value_of(scrape_of(metrics), sample);
}

void end_with(Metrics& metrics, Failure failure, int status, const std::string& phase = "") {
  RequestRecord record = sample_record();
  record.failure = failure;
  record.status = status;
  record.cancelled_phase = phase;
  metrics.request_started();
  metrics.observe(record);
}

double sum_of_failures(const Scrape& scrape) {
  double sum = 0;
  for (const auto& [value, name] : kFailures) {
    sum += value_of(scrape, "tgi_request_failure{err=\"" + std::string(name) + "\"}");
  }
  return sum;
}

}  // namespace

TEST_CASE("metrics: every name of TGI's is there before the first request") {
  const Metrics metrics = make_metrics();
  const Scrape scrape = scrape_of(metrics);
  for (const std::string name : {"tgi_request_count", "tgi_request_success"}) {
    CHECK(scrape.types.at(name) == "counter");
    CHECK(value_of(scrape, name) == 0);
  }
  CHECK(sum_of_failures(scrape) == 0);
  for (const std::string name :
       {"tgi_request_duration", "tgi_request_validation_duration", "tgi_request_queue_duration",
        "tgi_request_inference_duration", "tgi_request_mean_time_per_token_duration",
        "tgi_request_generated_tokens", "tgi_request_input_length", "tgi_request_max_new_tokens"}) {
    CHECK(scrape.types.at(name) == "histogram");
    CHECK(value_of(scrape, name + "_count") == 0);
  }
  CHECK(scrape.types.at("tgi_request_skipped_tokens") == "summary");
  for (const auto& [name, type] : scrape.types) {
    INFO(name);
    if (name.starts_with("tgi_")) CHECK_FALSE(name.ends_with("_total"));
  }
}

TEST_CASE("metrics: buckets are TGI's") {
  const Metrics metrics = make_metrics();
  const Scrape scrape = scrape_of(metrics);
  const auto bounds = [&](const std::string& name) {
    std::vector<double> out;
    const std::string head = name + "_bucket{le=\"";
    for (const auto& [sample, value] : scrape.samples) {
      if (!sample.starts_with(head)) continue;
      const std::string bound = sample.substr(head.size(), sample.size() - head.size() - 2);
      if (bound != "+Inf") out.push_back(std::stod(bound));
    }
    std::sort(out.begin(), out.end());
    return out;
  };
  for (const std::string name : {"tgi_request_duration", "tgi_request_inter_token_latency",
                                 "tgi_request_time_to_first_token"}) {
    const std::vector<double> durations = bounds(name);
    REQUIRE(durations.size() == 35);
    CHECK(durations[0] == Approx(0.00015));
    CHECK(durations[34] == Approx(0.00015 * std::pow(1.5, 34)));
  }
  CHECK(bounds("tgi_request_input_length").size() == 100);
  CHECK(bounds("tgi_request_input_length")[0] == 10);
  CHECK(bounds("tgi_request_input_length")[99] == 1000);
  CHECK(bounds("tgi_request_generated_tokens")[99] == 2000);
  CHECK(bounds("tgi_request_max_new_tokens")[0] == 20);
}

TEST_CASE("metrics: a request that went well is counted once, with its durations") {
  Metrics metrics = make_metrics();
  metrics.request_started();
  CHECK(metric(metrics, "tgi_requests_running") == 1);
  metrics.first_token(0.0255);
  for (int i = 0; i < 23; ++i) metrics.token_gap(0.004);
  metrics.observe(sample_record());
  const Scrape scrape = scrape_of(metrics);
  CHECK(value_of(scrape, "tgi_request_count") == 1);
  CHECK(value_of(scrape, "tgi_request_success") == 1);
  CHECK(sum_of_failures(scrape) == 0);
  CHECK(value_of(scrape, "tgi_requests_running") == 0);
  CHECK(value_of(scrape, "tgi_request_duration_sum") == Approx(0.126));
  CHECK(value_of(scrape, "tgi_request_validation_duration_sum") == Approx(0.002));
  CHECK(value_of(scrape, "tgi_request_queue_duration_sum") == Approx(0.003));
  CHECK(value_of(scrape, "tgi_request_inference_duration_sum") == Approx(0.12));
  CHECK(value_of(scrape, "tgi_request_mean_time_per_token_duration_sum") == Approx(0.005));
  CHECK(value_of(scrape, "tgi_request_generated_tokens_sum") == 24);
  CHECK(value_of(scrape, "tgi_request_input_length_sum") == 40);
  CHECK(value_of(scrape, "tgi_request_max_new_tokens_sum") == 24);
  CHECK(value_of(scrape, "tgi_request_time_to_first_token_count") == 1);
  CHECK(value_of(scrape, "tgi_request_inter_token_latency_count") == 23);
  CHECK(value_of(scrape, "tgi_request_inter_token_latency_sum") == Approx(0.092));
  CHECK(value_of(scrape, "tgi_request_skipped_tokens_count") == 24);
  CHECK(value_of(scrape, "tgi_request_skipped_tokens_sum") == 0);
  CHECK(value_of(scrape,
                 "tgi_http_requests{method=\"POST\",route=\"/generate_stream\","
                 "status=\"200\"}") == 1);
}

TEST_CASE("metrics: tokens that were skipped took no step of their own") {
  Metrics metrics = make_metrics();
  metrics.request_started();
  metrics.first_token(0.02);
  for (int i = 0; i < 23; ++i) metrics.token_gap(0.004);
  RequestRecord record = sample_record();
  record.stream = true;
  record.num_skipped_tokens = 14;
  metrics.observe(record);
  const Scrape scrape = scrape_of(metrics);
  CHECK(value_of(scrape, "tgi_request_skipped_tokens_count") == 10);
  CHECK(value_of(scrape, "tgi_request_skipped_tokens_sum") == 14);
}

TEST_CASE("metrics: LoRAX's names are there once there are adapters, with the same numbers") {
  bool has_adapters = false;
  Metrics metrics(
      {.max_input_tokens = 1000, .max_total_tokens = 2000, .trace_counts = {}, .has_adapters = [&] {
         return has_adapters;
       }});
  metrics.request_started();
  metrics.observe(sample_record());
  for (const std::string kind : {"", "download_adapter", "load_adapter", "load_adapter"}) {
    RequestRecord record = sample_record();
    record.status = 424;
    record.failure = Failure::kGeneration;
    record.adapter_failure = kind;
    metrics.request_started();
    metrics.observe(record);
  }
  // It was looked for because of a name that is no model's: the request was wrong, not the adapter.
  RequestRecord unknown = sample_record();
  unknown.status = 404;
  unknown.failure = Failure::kValidation;
  unknown.adapter_failure = "download_adapter";
  metrics.request_started();
  metrics.observe(unknown);
  for (const auto& [name, type] : scrape_of(metrics, sample_report()).types) {
    CHECK_FALSE(name.starts_with("lorax_"));
  }
  has_adapters = true;
  const Scrape scrape = scrape_of(metrics, sample_report());
  for (const std::string name :
       {"request_count", "request_success", "request_duration_sum", "request_input_length_count",
        "request_generated_tokens_sum", "batch_current_size"}) {
    INFO(name);
    CHECK(value_of(scrape, "lorax_" + name) == value_of(scrape, "tgi_" + name));
  }
  CHECK(value_of(scrape, "lorax_request_count") == 6);
  CHECK(value_of(scrape, "lorax_queue_length") == value_of(scrape, "tgi_queue_size"));
  const auto failures = [&](const std::string& whose, const std::string& err) {
    return value_of(scrape, whose + "_request_failure{err=\"" + err + "\"}");
  };
  CHECK(failures("tgi", "generation") == 4);
  CHECK(failures("lorax", "generation") == 1);
  CHECK(failures("lorax", "download_adapter") == 1);
  CHECK(failures("lorax", "load_adapter") == 2);
  CHECK(failures("lorax", "validation") == 1);
  CHECK(failures("lorax", "overloaded") == 0);
}

TEST_CASE("metrics: requests are successes, failures of one kind, or running") {
  Metrics metrics = make_metrics();
  end_with(metrics, Failure::kNone, 200);
  end_with(metrics, Failure::kOverloaded, 429);
  end_with(metrics, Failure::kValidation, 422);
  end_with(metrics, Failure::kTemplate, 422);
  end_with(metrics, Failure::kGeneration, 424);
  end_with(metrics, Failure::kIncomplete, 200);
  end_with(metrics, Failure::kDropped, 499);
  end_with(metrics, Failure::kNone, 200, "decode");  // the client left: the handler said no more
  end_with(metrics, Failure::kNone, 502);            // nor here
  end_with(metrics, Failure::kNone, 429);
  metrics.request_started();
  const Scrape scrape = scrape_of(metrics);
  const auto failures = [&](const std::string& err) {
    return value_of(scrape, "tgi_request_failure{err=\"" + err + "\"}");
  };
  CHECK(value_of(scrape, "tgi_request_count") == 11);
  CHECK(value_of(scrape, "tgi_request_success") == 1);
  CHECK(failures("overloaded") == 2);
  CHECK(failures("validation") == 1);
  CHECK(failures("template") == 1);
  CHECK(failures("generation") == 2);
  CHECK(failures("incomplete") == 1);
  CHECK(failures("dropped") == 2);
  CHECK(value_of(scrape, "tgi_requests_running") == 1);
  CHECK(value_of(scrape, "tgi_cancelled{phase=\"decode\"}") == 1);
  CHECK(value_of(scrape, "tgi_cancelled{phase=\"queue\"}") == 0);
  CHECK(value_of(scrape, "tgi_cancelled{phase=\"prefill\"}") == 0);
  CHECK(value_of(scrape, "tgi_request_duration_count") == 1);  // of the success alone
}

TEST_CASE("metrics: what generates nothing is an HTTP request alone") {
  Metrics metrics = make_metrics();
  RequestRecord record;
  record.method = "BREW\"\n";
  record.status = 404;
  record.path = "/whatever/the/client/likes";
  metrics.observe(record);
  RequestRecord known;
  known.method = "DELETE";
  known.route = "/v1/responses/{id}";
  known.status = 200;
  metrics.observe(known);
  const Scrape scrape = scrape_of(metrics);
  CHECK(value_of(scrape, "tgi_request_count") == 0);
  CHECK(value_of(scrape, "tgi_requests_running") == 0);
  CHECK(sum_of_failures(scrape) == 0);
  CHECK(value_of(scrape, "tgi_http_requests{method=\"other\",route=\"other\",status=\"404\"}") ==
        1);
  CHECK(value_of(scrape,
                 "tgi_http_requests{method=\"DELETE\",route=\"/v1/responses/"
                 "{id}\",status=\"200\"}") == 1);
}

TEST_CASE("metrics: the daemon's families pass through") {
  const Metrics metrics = make_metrics();
  const Scrape scrape = scrape_of(metrics, sample_report());
  CHECK(value_of(scrape, "tgi_engine_up") == 1);
  CHECK(value_of(scrape, "tgi_engine_families_refused") == 0);
  CHECK(scrape.types.at("tgi_kv_blocks") == "gauge");
  CHECK(value_of(scrape, "tgi_kv_blocks{state=\"cached\"}") == 20);
  CHECK(scrape.types.at("tgi_batch_inference_count") == "counter");
  CHECK(value_of(scrape, "tgi_batch_inference_count{method=\"decode\"}") == 50);
  CHECK(value_of(scrape, "tgi_batch_next_size_bucket{le=\"0.5\"}") == 2);
  CHECK(value_of(scrape, "tgi_batch_next_size_bucket{le=\"1\"}") == 5);
  CHECK(value_of(scrape, "tgi_batch_next_size_bucket{le=\"+Inf\"}") == 9);
  CHECK(value_of(scrape, "tgi_batch_next_size_count") == 9);
  CHECK(value_of(scrape, "tgi_batch_next_size_sum") == 9.5);
  CHECK(value_of(scrape, "tgi_batch_forward_duration_count{method=\"prefill\"}") == 9);
}

TEST_CASE("metrics: without the daemon the page has the gateway's families alone") {
  const Metrics metrics = make_metrics();
  const Scrape scrape = scrape_of(metrics);
  CHECK(value_of(scrape, "tgi_engine_up") == 0);
  CHECK(scrape.types.count("tgi_kv_blocks") == 0);
}

TEST_CASE("metrics: a family that would spoil the page is left out and counted") {
  const Metrics metrics = make_metrics();
  EngineReport report = sample_report();
  const size_t num_good = report.size();
  const auto add = [&](ipc::MetricFamily family) { report.push_back(std::move(family)); };
  const ipc::MetricSample one{.labels = {}, .value = 1};
  add({.name = "tgi_request_count", .type = "gauge", .help = "", .samples = {one}});  // ours
  add({.name = "tgi_engine_up", .type = "gauge", .help = "", .samples = {one}});      // ours
  add({.name = "tgi_queue_size", .type = "gauge", .help = "", .samples = {one}});     // twice
  add({.name = "tgi bad", .type = "gauge", .help = "", .samples = {one}});
  add({.name = "tgi_type", .type = "summary", .help = "", .samples = {one}});
  add({.name = "tgi_same", .type = "gauge", .help = "", .samples = {one, one}});
  ipc::MetricSample label{.labels = {{"a-b", "c"}}, .value = 1};
  add({.name = "tgi_label", .type = "gauge", .help = "", .samples = {label}});
  label.labels = {{"a", "1"}, {"a", "2"}};
  add({.name = "tgi_label_twice", .type = "gauge", .help = "", .samples = {label}});
  ipc::MetricSample buckets{.bounds = {1, 2}, .counts = {1, 2}, .sum = 3};
  add({.name = "tgi_short", .type = "histogram", .help = "", .samples = {buckets}});
  buckets = {.bounds = {2, 1}, .counts = {1, 2, 3}, .sum = 3};
  add({.name = "tgi_falling", .type = "histogram", .help = "", .samples = {buckets}});
  buckets = {.bounds = {1, 2}, .counts = {1, -2, 3}, .sum = 3};
  add({.name = "tgi_negative", .type = "histogram", .help = "", .samples = {buckets}});
  buckets = {.labels = {{"le", "1"}}, .bounds = {1}, .counts = {1, 2}, .sum = 3};
  add({.name = "tgi_le", .type = "histogram", .help = "", .samples = {buckets}});

  const Scrape scrape = scrape_of(metrics, report);
  CHECK(value_of(scrape, "tgi_engine_families_refused") ==
        static_cast<double>(report.size() - num_good));
  CHECK(scrape.types.at("tgi_request_count") == "counter");
  CHECK(value_of(scrape, "tgi_engine_up") == 1);
  CHECK(value_of(scrape, "tgi_queue_size") == 3);
  CHECK(scrape.types.count("tgi_falling") == 0);
}

TEST_CASE("metrics: label values are escaped") {
  const Metrics metrics = make_metrics();
  EngineReport report;
  report.push_back({.name = "tgi_x",
                    .type = "gauge",
                    .help = "two\nlines \\ and more",
                    .samples = {{.labels = {{"a", "q\"b\\s\nn"}}, .value = 1}}});
  const Scrape scrape = scrape_of(metrics, report);
  CHECK(value_of(scrape, "tgi_x{a=\"q\\\"b\\\\s\\nn\"}") == 1);
}

TEST_CASE("metrics: limits of zero are refused") {
  CHECK_THROWS_AS(Metrics({.max_input_tokens = 0, .max_total_tokens = 1, .trace_counts = {}}),
                  Error);
}

TEST_CASE("metrics: the exporter's counts are told when there is one") {
  const Metrics metrics(
      {.max_input_tokens = 1, .max_total_tokens = 1, .trace_counts = [] {
         return TraceCounts{
             .num_exported = 5, .num_queue_full = 4, .num_refused = 3, .num_unreachable = 2};
       }});
  const Scrape scrape = scrape_of(metrics);
  CHECK(value_of(scrape, "tgi_trace_spans_exported") == 5);
  CHECK(value_of(scrape, "tgi_trace_spans_dropped{reason=\"queue_full\"}") == 4);
  CHECK(value_of(scrape, "tgi_trace_spans_dropped{reason=\"refused\"}") == 3);
  CHECK(value_of(scrape, "tgi_trace_spans_dropped{reason=\"unreachable\"}") == 2);
  CHECK(scrape_of(make_metrics()).types.count("tgi_trace_spans_exported") == 0);
}

TEST_CASE("metrics: the process tells its memory, time and descriptors") {
  const Metrics metrics = make_metrics();
  const Scrape before = scrape_of(metrics);
  CHECK(value_of(before, "process_resident_memory_bytes") > 1e6);
  CHECK(value_of(before, "process_virtual_memory_bytes") >
        value_of(before, "process_resident_memory_bytes"));
  CHECK(value_of(before, "process_cpu_seconds_total") > 0);
  const double now = static_cast<double>(std::time(nullptr));
  CHECK(value_of(before, "process_start_time_seconds") <= now + 1);
  CHECK(value_of(before, "process_start_time_seconds") > now - 3600);
  const UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  CHECK(metric(metrics, "process_open_fds") == value_of(before, "process_open_fds") + 1);
}

TEST_CASE("metrics: nothing is lost between threads that observe and one that scrapes") {
  Metrics metrics = make_metrics();
  constexpr int kThreads = 8;
  constexpr int kTokens = 20'000;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        metrics.request_started();
        for (int k = 0; k < kTokens; ++k) metrics.token_gap(0.001);
        metrics.observe(sample_record());
      });
    }
    for (int i = 0; i < 20; ++i) scrape_of(metrics);
  }
  const Scrape scrape = scrape_of(metrics);
  CHECK(value_of(scrape, "tgi_request_inter_token_latency_count") == kThreads * kTokens);
  CHECK(value_of(scrape, "tgi_request_inter_token_latency_sum") ==
        Approx(kThreads * kTokens / 1e3));
  CHECK(value_of(scrape, "tgi_request_success") == kThreads);
}

}  // namespace tgi::http
