#include "cmd/bench/serving_bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cmd/bench/history.h"
#include "cmd/bench/http_transport.h"
#include "cmd/bench/live_view.h"
#include "cmd/bench/load_driver.h"
#include "cmd/bench/probe.h"
#include "cmd/bench/serving_report.h"
#include "cmd/bench/socket_transport.h"
#include "cmd/bench/trace.h"

namespace tgi::bench {
namespace {

constexpr int64_t kDefaultConcurrency = 8;
constexpr int64_t kDefaultRequestsPerStream = 10;
constexpr size_t kServingGaugeWidth = 32;
constexpr size_t kRecentRecords = 256;
constexpr uint64_t kWarmUpSeeds = 0x57A1E000;

// A plan with its description.
struct Load {
  LoadPlan plan;
  std::string text;
  std::optional<int64_t> num_requests;
};

PromptShape shape_of(const BenchFlags& flags) {
  return {.num_prompt_tokens = flags.prompt_length,
          .num_shared_tokens = flags.shared_prefix,
          .num_output_tokens = flags.decode_length,
          .seed = flags.seed};
}

std::string describe_shape(const BenchFlags& flags) {
  return fmt::format(
      "prompts of {} tokens{}, answers of {}", flags.prompt_length,
      flags.shared_prefix > 0 ? fmt::format(" ({} of them shared)", flags.shared_prefix) : "",
      flags.decode_length);
}

std::string describe_limit(const BenchFlags& flags) {
  return flags.concurrency ? fmt::format(", at most {} at once", *flags.concurrency) : "";
}

Load concurrency_load(const BenchFlags& flags) {
  const int64_t concurrency = flags.concurrency.value_or(kDefaultConcurrency);
  std::optional<int64_t> num_requests = flags.requests;
  if (!num_requests && !flags.duration) num_requests = concurrency * kDefaultRequestsPerStream;
  std::string text = fmt::format("{} at once", concurrency);
  if (num_requests) text += fmt::format(", {} requests", *num_requests);
  if (flags.duration) text += fmt::format(", started for {} s", *flags.duration);
  return {.plan = {.source = uniform_source(shape_of(flags), num_requests),
                   .open_loop = false,
                   .max_running = concurrency,
                   .start_for_s = flags.duration},
          .text = fmt::format("{}; {}", text, describe_shape(flags)),
          .num_requests = num_requests};
}

Load poisson_load(const BenchFlags& flags) {
  std::optional<int64_t> wanted = flags.requests;
  if (!wanted && !flags.duration) wanted = kDefaultConcurrency * kDefaultRequestsPerStream;
  std::vector<double> arrivals = poisson_arrivals(*flags.rate, wanted, flags.duration, flags.seed);
  if (arrivals.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("--rate {} gives no request within --duration {}", *flags.rate,
                            *flags.duration));
  }
  const auto count = static_cast<int64_t>(arrivals.size());
  return {.plan = {.source = poisson_source(shape_of(flags), std::move(arrivals)),
                   .open_loop = true,
                   .max_running = flags.concurrency.value_or(0),
                   .start_for_s = std::nullopt},
          .text = fmt::format("Poisson arrivals, {} a second, {} requests{}; {}", *flags.rate,
                              count, describe_limit(flags), describe_shape(flags)),
          .num_requests = count};
}

Load trace_load(const BenchFlags& flags) {
  const std::vector<TraceRequest> trace =
      parse_trace(read_input(flags.trace), flags.trace, flags.requests);
  const bool has_prefixes =
      std::ranges::any_of(trace, [](const TraceRequest& one) { return !one.block_hashes.empty(); });
  if (has_prefixes && flags.shared_prefix > 0) {
    throw Error(
        Code::kInvalidArgument,
        flags.trace + " has shared prefixes of its own (hash_ids): leave --shared-prefix out");
  }
  TracePlan planned = plan_trace(trace, {.speed = flags.trace_speed,
                                         .length_scale = flags.trace_scale,
                                         .max_total_tokens = flags.max_total_tokens,
                                         .num_shared_tokens = flags.shared_prefix,
                                         .seed = flags.seed});
  const auto count = static_cast<int64_t>(planned.requests.size());
  std::string text = fmt::format("{}, {} requests at {} times its speed{}", flags.trace, count,
                                 flags.trace_speed, describe_limit(flags));
  if (flags.trace_scale != 1) text += fmt::format(", lengths times {}", flags.trace_scale);
  if (planned.num_shortened > 0) {
    text += fmt::format("; {} requests shortened to {} tokens", planned.num_shortened,
                        *flags.max_total_tokens);
  }
  return {.plan = {.source = list_source(std::move(planned.requests)),
                   .open_loop = true,
                   .max_running = flags.concurrency.value_or(0),
                   .start_for_s = flags.duration},
          .text = std::move(text),
          .num_requests = count};
}

Load make_load(const BenchFlags& flags) {
  if (!flags.trace.empty()) return trace_load(flags);
  return flags.rate ? poisson_load(flags) : concurrency_load(flags);
}

std::unique_ptr<Transport> socket_transport(const BenchFlags& flags,
                                            Session& session,
                                            ServingReport& report) {
  const ipc::Status status = session.prepare();
  if (!status.model) {
    throw Error(Code::kOverloaded, "the daemon has no model; load one with `tgi load PATH`");
  }
  report.server = session.client().socket_path();
  report.api = "socket";
  report.model = status.model->name;
  return std::make_unique<SocketTransport>(
      SocketTarget{.socket_path = session.client().socket_path(),
                   .vocab_size = status.model->vocab_size,
                   .use_prefix_cache = true,
                   .sampling = to_params(flags.sampling)},
      session.interrupt().fd());
}

std::unique_ptr<Transport> http_transport(const BenchFlags& flags,
                                          Session& session,
                                          ServingReport& report) {
  HttpTarget target{.url = base_url(flags.url),
                    .api = api_from_name(flags.api),
                    .api_key = flags.api_key,
                    .check_certificate = !flags.insecure,
                    .timeout_s = flags.timeout,
                    .body = {.model = flags.model,
                             .ignore_eos = flags.ignore_eos,
                             .sampling = flags.sampling.params},
                    .words = {}};
  if (target.api != Api::kTgi) target.body.sampling["seed"] = flags.seed;
  report.note = probe_server(target, flags.tokens_per_word, session.interrupt().fd());
  report.server = target.url;
  report.api = api_name(target.api);
  report.model = target.body.model;
  return std::make_unique<HttpTransport>(std::move(target), session.interrupt().fd());
}

// Like the first request of the load, with prompts of their own.
void warm_up(const BenchFlags& flags, const LoadPlan& measured, Transport& transport) {
  const std::optional<PlannedRequest> first = measured.source(0);
  const RequestSource source = [&](size_t index) -> std::optional<PlannedRequest> {
    if (!first || static_cast<int64_t>(index) >= flags.warmups) return std::nullopt;
    PlannedRequest request = *first;
    for (PromptPiece& piece : request.prompt) piece.seed ^= kWarmUpSeeds + index;
    return request;
  };
  const LoadPlan plan{.source = source,
                      .open_loop = false,
                      .max_running = flags.concurrency.value_or(kDefaultConcurrency),
                      .start_for_s = std::nullopt};
  run_load(plan, transport, nullptr);
}

class ServingView {
 public:
  ServingView(const ServingReport& report, std::optional<int64_t> num_requests, bool enabled)
      : report_(report), num_requests_(num_requests), view_(STDERR_FILENO, enabled) {}

  void draw(const LoadProgress& progress) {
    if (!view_.enabled()) return;
    size_t num_events = 0;
    size_t num_failed = 0;
    for (const RequestRecord& record : progress.records) {
      num_events += record.output_s.size();
      if (!record.error_kind.empty()) ++num_failed;
    }
    const double rate =
        static_cast<double>(num_events - last_events_) / std::max(progress.now_s - last_s_, 1e-3);
    last_events_ = num_events;
    last_s_ = progress.now_s;
    std::vector<std::string> lines = {fmt::format("{} ({})", report_.server, report_.api),
                                      report_.load, progress_line(progress),
                                      fmt::format("running {}, failed {}, {:.1f} events/s",
                                                  progress.num_running, num_failed, rate)};
    add_latencies(progress, lines);
    view_.draw(lines);
  }

 private:
  std::string progress_line(const LoadProgress& progress) const {
    if (!num_requests_) {
      return fmt::format("{} requests done, {:.0f} s", progress.num_finished, progress.now_s);
    }
    const double share =
        static_cast<double>(progress.num_finished) / static_cast<double>(*num_requests_);
    return fmt::format("{} {} of {} requests, {:.0f} s", gauge(share, kServingGaugeWidth),
                       progress.num_finished, *num_requests_, progress.now_s);
  }

  // Only the requests that were started last: a view must not cost more the longer a load lasts.
  static void add_latencies(const LoadProgress& progress, std::vector<std::string>& lines) {
    std::vector<double> ttft;
    std::vector<double> gaps;
    const size_t count = progress.records.size();
    for (size_t i = count - std::min(count, kRecentRecords); i < count; ++i) {
      const RequestRecord& record = progress.records[i];
      if (const auto latency = latency_of(record)) ttft.push_back(latency->ttft);
      for (size_t k = 1; k < record.output_s.size(); ++k) {
        gaps.push_back(record.output_s[k] - record.output_s[k - 1]);
      }
    }
    const auto line = [](std::string_view name, const std::optional<Summary>& summary) {
      return fmt::format("{} p50 {:.2f} ms, p90 {:.2f}, p99 {:.2f}", name, summary->p50,
                         summary->p90, summary->p99);
    };
    if (!ttft.empty()) lines.push_back(line("first token:", summarize(std::move(ttft))));
    if (gaps.empty()) return;
    lines.push_back(line("inter-token:", summarize(gaps, 1000)));
    std::ranges::copy(draw_histogram(gaps, kLiveHistogramBins, kLiveBarWidth),
                      std::back_inserter(lines));
  }

  const ServingReport& report_;
  const std::optional<int64_t> num_requests_;
  LiveView view_;
  size_t last_events_ = 0;
  double last_s_ = 0;
};

int exit_status(const ServingStats& stats, bool interrupted) {
  if (interrupted) {
    Session::say("broken off by Ctrl-C: this is what was measured until then");
    return code_row(Code::kCancelled).exit_status;
  }
  if (stats.num_ok > 0 || stats.errors.empty()) return 0;
  const auto& [kind, group] = *std::ranges::max_element(
      stats.errors, {}, [](const auto& entry) { return entry.second.count; });
  return report_error(Error(Code::kUnavailable, fmt::format("not one request was answered: {}: {}",
                                                            kind, group.example)));
}

}  // namespace

int run_serving_bench(const BenchFlags& flags, Session& session) {
  ServingReport report;
  if (!flags.goodput.empty()) report.target = parse_goodput(flags.goodput);
  const Load load = make_load(flags);
  report.load = load.text;
  // A file that can't be written should be known before an hour of measuring.
  if (!flags.csv.empty()) write_file(flags.csv, serving_csv({}, report.target));
  const std::unique_ptr<Transport> transport = flags.url.empty()
                                                   ? socket_transport(flags, session, report)
                                                   : http_transport(flags, session, report);
  if (flags.warmups > 0) warm_up(flags, load.plan, *transport);
  LoadResult result;
  {
    ServingView view(report, load.num_requests, !flags.quiet && can_draw_on(STDERR_FILENO));
    result = run_load(load.plan, *transport,
                      [&view](const LoadProgress& progress) { view.draw(progress); });
  }
  session.interrupt().take();  // so that the output can be written
  report.stats = compute_stats(result, report.target);
  if (!flags.csv.empty()) write_file(flags.csv, serving_csv(result, report.target));
  session.out().write(flags.json ? serving_json(report) : serving_tables(report));
  if (!result.interrupted && report.stats.num_ok > 0) keep_serving_bench(report, flags);
  return exit_status(report.stats, result.interrupted);
}

}  // namespace tgi::bench
