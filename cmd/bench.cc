#include "cmd/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/error.h"
#include "cmd/bench_run.h"
#include "cmd/ps.h"
#include "cmd/read_bandwidth.h"

namespace tgi {
namespace {

using ipc::OrderedJson;

struct Percentiles {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
};

struct BatchResult {
  int batch_size = 0;
  double prefill_tokens_per_s = 0;
  std::optional<double> decode_tokens_per_s;
  std::optional<double> bytes_per_s;  // read while decoding
  std::optional<double> share_of_read;
  Percentiles first_token_ms;
  Percentiles inter_token_ms;
};

Percentiles percentiles_ms(const std::vector<double>& seconds) {
  return {.p50 = 1000 * percentile(seconds, 0.50),
          .p90 = 1000 * percentile(seconds, 0.90),
          .p99 = 1000 * percentile(seconds, 0.99)};
}

// One decode step reads the weights once and the KV of every sequence of the batch.
double bytes_per_step(const BenchFlags& flags, int batch_size, const ipc::ModelStatus& model) {
  const double context =
      static_cast<double>(flags.prompt_length) + static_cast<double>(flags.decode_length) / 2;
  return static_cast<double>(model.weight_bytes_per_token) +
         context * static_cast<double>(model.kv_bytes_per_token) * batch_size;
}

BatchResult measure_batch(const BenchFlags& flags,
                          int batch_size,
                          const ipc::ModelStatus& model,
                          const Session& session) {
  RunOptions options{.prompt_length = flags.prompt_length,
                     .decode_length = flags.decode_length,
                     .batch_size = batch_size,
                     .vocab_size = model.vocab_size,
                     .seed = 0};
  measure_run(session.client(), options);  // warm-up
  std::vector<double> prefill;
  std::vector<double> decode;
  std::vector<double> first_token;
  std::vector<double> inter_token;
  for (int run = 0; run < flags.runs; ++run) {
    options.seed = static_cast<uint64_t>(run) + 1;
    const RunTimes times = measure_run(session.client(), options);
    prefill.push_back(prefill_tokens_per_s(times, flags.prompt_length));
    if (const auto rate = decode_tokens_per_s(times)) decode.push_back(*rate);
    std::ranges::copy(times_to_first_token(times), std::back_inserter(first_token));
    std::ranges::copy(inter_token_times(times), std::back_inserter(inter_token));
    session.say_verbose(fmt::format("batch {}, run {} of {}: prefill {:.1f} tokens/s, decode {}",
                                    batch_size, run + 1, flags.runs, prefill.back(),
                                    decode.empty() ? "-" : fmt::format("{:.1f}", decode.back())));
  }
  BatchResult result;
  result.batch_size = batch_size;
  result.prefill_tokens_per_s = median(prefill);
  result.first_token_ms = percentiles_ms(first_token);
  result.inter_token_ms = percentiles_ms(inter_token);
  if (decode.size() == static_cast<size_t>(flags.runs)) {
    result.decode_tokens_per_s = median(decode);
    result.bytes_per_s =
        *result.decode_tokens_per_s / batch_size * bytes_per_step(flags, batch_size, model);
  }
  return result;
}

OrderedJson to_json(const Percentiles& values) {
  return {{"p50", values.p50}, {"p90", values.p90}, {"p99", values.p99}};
}

OrderedJson to_json(const std::optional<double>& value) {
  return value ? OrderedJson(*value) : OrderedJson();
}

std::string as_json(const BenchFlags& flags,
                    const ipc::ModelStatus& model,
                    const ReadBandwidth& plain,
                    const std::vector<BatchResult>& results) {
  OrderedJson out = {{"model", model.name},
                     {"architecture", model.architecture},
                     {"dtype", model.dtype},
                     {"backend", model.backend},
                     {"isa", model.isa},
                     {"num_threads", model.num_threads},
                     {"prompt_length", flags.prompt_length},
                     {"decode_length", flags.decode_length},
                     {"runs", flags.runs},
                     {"plain_read_bytes_per_s", plain.bytes_per_s},
                     {"plain_read_buffer_bytes", plain.buffer_bytes},
                     {"batches", OrderedJson::array()}};
  for (const BatchResult& result : results) {
    out["batches"].push_back({{"batch_size", result.batch_size},
                              {"prefill_tokens_per_s", result.prefill_tokens_per_s},
                              {"decode_tokens_per_s", to_json(result.decode_tokens_per_s)},
                              {"time_to_first_token_ms", to_json(result.first_token_ms)},
                              {"inter_token_ms", to_json(result.inter_token_ms)},
                              {"decode_bytes_per_s", to_json(result.bytes_per_s)},
                              {"share_of_plain_read", to_json(result.share_of_read)}});
  }
  return out.dump() + "\n";
}

std::string format_percentiles(const Percentiles& values) {
  return fmt::format("{:.1f} / {:.1f} / {:.1f}", values.p50, values.p90, values.p99);
}

std::string format_optional(const std::optional<double>& value,
                            double scale,
                            std::string_view unit) {
  return value ? fmt::format("{:.1f}{}", *value * scale, unit) : std::string("-");
}

std::string as_table(const BenchFlags& flags,
                     const ipc::ModelStatus& model,
                     const ReadBandwidth& plain,
                     const std::vector<BatchResult>& results) {
  constexpr std::string_view kRow = "{:>5}  {:>10}  {:>10}  {:>24}  {:>24}  {:>9}  {:>8}\n";
  std::string out = fmt::format(
      "{} ({}, {}), {} {}, {} threads; prompt {} tokens, answer {}, median of {} runs\n",
      model.name, model.architecture, model.dtype, model.backend, model.isa, model.num_threads,
      flags.prompt_length, flags.decode_length, flags.runs);
  out += fmt::format(fmt::runtime(kRow), "", "prefill", "decode", "first token ms",
                     "between tokens ms", "decode", "of plain");
  out += fmt::format(fmt::runtime(kRow), "batch", "tokens/s", "tokens/s", "p50 / p90 / p99",
                     "p50 / p90 / p99", "reads", "reading");
  bool any_missing = false;
  for (const BatchResult& result : results) {
    out += fmt::format(
        fmt::runtime(kRow), result.batch_size, fmt::format("{:.1f}", result.prefill_tokens_per_s),
        format_optional(result.decode_tokens_per_s, 1, ""),
        format_percentiles(result.first_token_ms), format_percentiles(result.inter_token_ms),
        format_optional(result.bytes_per_s, 1e-9, " GB/s"),
        format_optional(result.share_of_read, 100, " %"));
    any_missing = any_missing || !result.decode_tokens_per_s;
  }
  out += fmt::format("plain reading: {:.1f} GB/s with {} threads over {}\n",
                     plain.bytes_per_s / 1e9, model.num_threads, format_bytes(plain.buffer_bytes));
  if (any_missing) {
    out +=
        "-: the first answer ended before the last prompt was done; use a larger "
        "--decode-length\n";
  }
  return out;
}

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

void add_bench_flags(CLI::App& app, BenchFlags& flags) {
  app.footer(
      "Random token ids from a fixed seed, without the prefix cache and without an early "
      "end. Prefill is the prompt tokens of the batch over the time until every sequence "
      "has its first token. Decode counts the tokens between that moment and the end of the "
      "first sequence.\n\n"
      "What decoding reads is steps per second times the bytes of one step: all weights "
      "once, and the KV cache of every sequence at its mean length. It is compared with "
      "threads that only read: as many as the daemon has, over as many bytes (at most 2 "
      "GiB), at their best.");
  const auto range = [](int low, int high) { return CLI::Range(low, high); };
  app.add_option("--prompt-length", flags.prompt_length, "tokens of each prompt; default 512")
      ->type_name("N")
      ->check(range(1, 1 << 24));
  app.add_option("--decode-length", flags.decode_length, "tokens of each answer; default 128")
      ->type_name("N")
      ->check(range(2, 1 << 24));
  app.add_option("--batch-sizes", flags.batch_sizes,
                 "how many requests at once, with commas between; default 1,4,16")
      ->type_name("N,N,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(range(1, 1024));
  app.add_option("--runs", flags.runs, "measured runs after one warm-up; default 5")
      ->type_name("N")
      ->check(range(1, 1000));
  app.add_flag("--json", flags.json, "write one JSON object");
}

int run_bench(const BenchFlags& flags, const CommonFlags& common) {
  Session session(common);
  const ipc::Status status = session.prepare();
  if (!status.model) {
    throw Error(Code::kOverloaded, "the daemon has no model; load one with `tgi load PATH`");
  }
  const ipc::ModelStatus& model = *status.model;
  check_fits(flags, model);
  std::vector<BatchResult> results;
  for (const int batch_size : flags.batch_sizes) {
    results.push_back(measure_batch(flags, batch_size, model, session));
  }
  const ReadBandwidth plain = measure_read_bandwidth(
      model.weight_bytes_per_token, static_cast<int>(std::max<int64_t>(model.num_threads, 1)));
  for (BatchResult& result : results) {
    if (result.bytes_per_s) result.share_of_read = *result.bytes_per_s / plain.bytes_per_s;
  }
  session.out().write(flags.json ? as_json(flags, model, plain, results)
                                 : as_table(flags, model, plain, results));
  return 0;
}

}  // namespace tgi
