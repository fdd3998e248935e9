#include "cmd/bench/engine_run.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "ipc/client.h"

namespace tgi::bench {
namespace {

struct Window {
  double begin = 0;                                      // all have their first token
  double end = std::numeric_limits<double>::infinity();  // the first one has its last
};

Window decode_window(const RunTimes& times) {
  Window window;
  for (const auto& sequence : times) {
    window.begin = std::max(window.begin, sequence.front());
    window.end = std::min(window.end, sequence.back());
  }
  return window;
}

}  // namespace

RunTimes measure_run(Transport& transport,
                     const RunOptions& options,
                     const OnProgress& on_progress) {
  const PromptShape shape{.num_prompt_tokens = options.prompt_length,
                          .num_shared_tokens = 0,
                          .num_output_tokens = options.decode_length,
                          .seed = options.seed};
  const LoadPlan plan{.source = uniform_source(shape, options.batch_size),
                      .open_loop = false,
                      .max_running = 0,
                      .start_for_s = std::nullopt};
  LoadResult load = run_load(plan, transport, on_progress);
  if (load.interrupted) throw ipc::Stopped(ipc::Stopped::Why::kCancelFd);
  RunTimes times;
  for (RequestRecord& record : load.records) {
    if (!record.ok()) throw Error(code_from_name(record.error_kind), record.error);
    if (static_cast<int64_t>(record.output_s.size()) != options.decode_length) {
      throw Error(Code::kInternal, "the daemon did not generate as many tokens as asked");
    }
    times.push_back(std::move(record.output_s));
  }
  return times;
}

double prefill_s(const RunTimes& times) {
  return decode_window(times).begin;
}

double decode_total_s(const RunTimes& times) {
  double end = 0;
  for (const auto& sequence : times) end = std::max(end, sequence.back());
  return end - prefill_s(times);
}

double prefill_tokens_per_s(const RunTimes& times, int64_t prompt_length) {
  return static_cast<double>(prompt_length) * static_cast<double>(times.size()) / prefill_s(times);
}

std::optional<double> decode_tokens_per_s(const RunTimes& times) {
  const Window window = decode_window(times);
  size_t num_tokens = 0;
  for (const auto& sequence : times) {
    for (const double time : sequence) {
      if (time > window.begin && time <= window.end) ++num_tokens;
    }
  }
  if (window.end <= window.begin || num_tokens < 2 * times.size()) return std::nullopt;
  return static_cast<double>(num_tokens) / (window.end - window.begin);
}

std::vector<double> times_to_first_token(const RunTimes& times) {
  std::vector<double> out;
  for (const auto& sequence : times) out.push_back(sequence.front());
  return out;
}

std::vector<double> inter_token_times(const RunTimes& times) {
  std::vector<double> out;
  for (const auto& sequence : times) {
    for (size_t i = 1; i < sequence.size(); ++i) out.push_back(sequence[i] - sequence[i - 1]);
  }
  return out;
}

}  // namespace tgi::bench
