#include "cmd/bench/engine_bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "cmd/bench/engine_run.h"
#include "cmd/bench/history.h"
#include "cmd/bench/live_view.h"
#include "cmd/bench/socket_transport.h"

namespace tgi::bench {
namespace {

constexpr size_t kEngineGaugeWidth = 24;
constexpr auto kDrawEvery = std::chrono::milliseconds(200);

// One decode step reads the weights once and the KV of every sequence of the batch.
double bytes_per_step(const BenchFlags& flags, int batch_size, const ipc::ModelStatus& model) {
  const double context =
      static_cast<double>(flags.prompt_length) + static_cast<double>(flags.decode_length) / 2;
  const ipc::KvGroupCounts& groups = model.kv_groups;
  const double seen = static_cast<double>(groups.num_full) * context +
                      static_cast<double>(groups.num_windowed) *
                          std::min(context, static_cast<double>(groups.window));
  const double kv_bytes = seen / static_cast<double>(groups.num_groups()) *
                          static_cast<double>(model.kv_bytes_per_token);
  return static_cast<double>(model.weight_bytes_per_token) + kv_bytes * batch_size;
}

// Where the bench is, for the live view.
struct Place {
  size_t num_batches_done = 0;
  int num_runs_done = -1;  // -1: warming up
};

class EngineBench {
 public:
  EngineBench(const BenchFlags& flags, const ipc::ModelStatus& model, Session& session)
      : flags_(flags),
        model_(model),
        session_(session),
        transport_({.socket_path = session.client().socket_path(),
                    .vocab_size = model.vocab_size,
                    .use_prefix_cache = false,
                    .sampling = to_params(flags.sampling)},
                   session.interrupt().fd()),
        view_(STDERR_FILENO, !flags.quiet && can_draw_on(STDERR_FILENO)) {}

  // Runs until all batch sizes are done or Ctrl-C; true when all are.
  bool measure(std::vector<BatchResult>& results) {
    try {
      for (const int batch_size : flags_.batch_sizes) {
        samples_ = {};
        samples_.batch_size = batch_size;
        measure_batch();
        results.push_back(result());
        ++place_.num_batches_done;
      }
    } catch (const ipc::Stopped&) {
      if (!samples_.prefill_s.empty()) results.push_back(result());
      return false;
    }
    return true;
  }

 private:
  RunTimes run_once(uint64_t seed) {
    return measure_run(transport_,
                       {.prompt_length = flags_.prompt_length,
                        .decode_length = flags_.decode_length,
                        .batch_size = samples_.batch_size,
                        .seed = seed},
                       [this](const LoadProgress& progress) { draw(progress); });
  }

  void measure_batch() {
    place_.num_runs_done = -1;
    // Seeds of warm-ups and of runs must not meet: the prompts would be the same.
    for (int64_t i = 0; i < flags_.warmups; ++i) {
      run_once(flags_.seed + static_cast<uint64_t>(flags_.runs + i));
    }
    for (int run = 0; run < flags_.runs; ++run) {
      place_.num_runs_done = run;
      take(run_once(flags_.seed + static_cast<uint64_t>(run)));
    }
  }

  void take(const RunTimes& times) {
    samples_.prefill_s.push_back(prefill_s(times));
    samples_.decode_total_s.push_back(decode_total_s(times));
    samples_.prefill_tokens_per_s.push_back(prefill_tokens_per_s(times, flags_.prompt_length));
    if (const auto rate = decode_tokens_per_s(times)) samples_.decode_tokens_per_s.push_back(*rate);
    std::ranges::copy(times_to_first_token(times), std::back_inserter(samples_.first_token_s));
    std::ranges::copy(inter_token_times(times), std::back_inserter(samples_.inter_token_s));
    session_.say_verbose(fmt::format("batch {}, run {} of {}: {}", samples_.batch_size,
                                     place_.num_runs_done + 1, flags_.runs, rates_line()));
  }

  BatchResult result() const {
    BatchResult out;
    out.samples = samples_;
    if (samples_.decode_tokens_per_s.size() == samples_.prefill_s.size()) {
      out.decode_tokens_per_s = median(samples_.decode_tokens_per_s);
      out.bytes_per_s = *out.decode_tokens_per_s / samples_.batch_size *
                        bytes_per_step(flags_, samples_.batch_size, model_);
    }
    return out;
  }

  std::string rates_line() const {
    const auto last = [](const std::vector<double>& values) {
      return values.empty() ? std::string("-") : fmt::format("{:.1f}", values.back());
    };
    return fmt::format("prefill {} tokens/s, decode {}", last(samples_.prefill_tokens_per_s),
                       last(samples_.decode_tokens_per_s));
  }

  void draw(const LoadProgress& progress) {
    if (!view_.enabled() || BenchClock::now() < next_draw_) return;
    next_draw_ = BenchClock::now() + kDrawEvery;
    const auto share = [](double done, size_t all) { return done / static_cast<double>(all); };
    RunTimes times;
    for (const RequestRecord& record : progress.records) {
      if (!record.output_s.empty()) times.push_back(record.output_s);
    }
    std::vector<double> gaps = samples_.inter_token_s;
    std::ranges::copy(inter_token_times(times), std::back_inserter(gaps));
    const size_t num_batches = flags_.batch_sizes.size();
    std::vector<std::string> lines = {
        fmt::format("{}: prompt {} tokens, answer {}", model_.name, flags_.prompt_length,
                    flags_.decode_length),
        fmt::format("batch sizes {} {} of {}",
                    gauge(share(static_cast<double>(place_.num_batches_done), num_batches),
                          kEngineGaugeWidth),
                    place_.num_batches_done, num_batches),
        fmt::format(
            "batch {:<5} {} {}", samples_.batch_size,
            gauge(share(std::max(place_.num_runs_done, 0), static_cast<size_t>(flags_.runs)),
                  kEngineGaugeWidth),
            place_.num_runs_done < 0
                ? std::string("warming up")
                : fmt::format("run {} of {}", place_.num_runs_done + 1, flags_.runs)),
        fmt::format("now         {} of {} sequences decode, {:.1f} s", times.size(),
                    progress.records.size(), progress.now_s),
        fmt::format("last run    {}", rates_line())};
    if (const auto between = summarize(gaps, 1000)) {
      lines.push_back(fmt::format("between tokens: p50 {:.2f} ms, p90 {:.2f}, p99 {:.2f}",
                                  between->p50, between->p90, between->p99));
      std::ranges::copy(draw_histogram(gaps, kLiveHistogramBins, kLiveBarWidth),
                        std::back_inserter(lines));
    }
    view_.draw(lines);
  }

  const BenchFlags& flags_;
  const ipc::ModelStatus& model_;
  Session& session_;
  SocketTransport transport_;
  LiveView view_;
  BenchClock::time_point next_draw_{};  // runs may be shorter than the eye can follow
  BatchSamples samples_;
  Place place_;
};

void check_fits(const BenchFlags& flags, const ipc::ModelStatus& model) {
  const int64_t num_tokens = flags.prompt_length + flags.decode_length;
  if (num_tokens > model.max_total_tokens) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("--prompt-length {} and --decode-length {} make {} tokens, the model {} "
                    "has room for {}",
                    flags.prompt_length, flags.decode_length, num_tokens, model.name,
                    model.max_total_tokens));
  }
}

}  // namespace

int run_engine_bench(const BenchFlags& flags, Session& session) {
  const ipc::Status status = session.prepare();
  if (!status.model) {
    throw Error(Code::kOverloaded, "the daemon has no model; load one with `tgi load PATH`");
  }
  const ipc::ModelStatus& model = *status.model;
  check_fits(flags, model);
  EngineReport report{.flags = flags, .model = model, .plain = {}, .results = {}};
  const bool complete = EngineBench(flags, model, session).measure(report.results);
  if (complete && model.num_threads > 0) {  // else it is not this memory that is read
    report.plain = measure_read_bandwidth(
        model.weight_bytes_per_token, static_cast<int>(std::max<int64_t>(model.num_threads, 1)));
    for (BatchResult& result : report.results) {
      if (result.bytes_per_s) result.share_of_read = *result.bytes_per_s / report.plain.bytes_per_s;
    }
  } else if (!complete) {
    session.interrupt().take();  // so that the output can be written
    if (report.results.empty()) throw ipc::Stopped(ipc::Stopped::Why::kCancelFd);
    Session::say("broken off by Ctrl-C: this is what was measured until then");
  }
  session.out().write(flags.json ? engine_json(report) : engine_tables(report));
  if (complete) keep_engine_bench(report);
  return complete ? 0 : code_row(Code::kCancelled).exit_status;
}

}  // namespace tgi::bench
