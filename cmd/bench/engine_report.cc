// The tables that TGI's benchmark prints, a table of ours about memory, and all of it as JSON.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cmd/bench/engine_bench.h"
#include "cmd/bench/report_json.h"
#include "cmd/bench/table.h"
#include "cmd/ps.h"

namespace tgi::bench {
namespace {

using ipc::OrderedJson;

std::string parameters_table(const EngineReport& report) {
  const BenchFlags& flags = report.flags;
  const ipc::ModelStatus& model = report.model;
  Table table({"Parameter", "Value"}, 2);
  table.add({"Model", model.name});
  table.add({"Sequence Length", std::to_string(flags.prompt_length)});
  table.add({"Decode Length", std::to_string(flags.decode_length)});
  table.add({"N Runs", std::to_string(flags.runs)});
  table.add({"Warmups", std::to_string(flags.warmups)});
  for (const auto& [name, value] : flags.sampling.params.items()) table.add({name, value.dump()});
  return fmt::format("{} ({}, {}), {} {}, {} threads\n\n", model.name, model.architecture,
                     model.dtype, model.backend, model.isa, model.num_threads) +
         table.text();
}

std::string latency_table(const EngineReport& report) {
  Table table(summary_heads({"Step", "Batch Size"}));
  struct Row {
    std::string_view step;
    std::vector<double> BatchSamples::*seconds;
  };
  constexpr Row kRows[] = {{"Prefill", &BatchSamples::prefill_s},
                           {"Decode (token)", &BatchSamples::inter_token_s},
                           {"Decode (total)", &BatchSamples::decode_total_s}};
  for (const Row& row : kRows) {
    for (const BatchResult& result : report.results) {
      table.add(summary_cells({std::string(row.step), std::to_string(result.samples.batch_size)},
                              summarize(result.samples.*row.seconds, 1000)));
    }
  }
  return "Latency, ms\n\n" + table.text();
}

std::string throughput_table(const EngineReport& report) {
  Table table({"Step", "Batch Size", "Average", "Lowest", "Highest"});
  const auto add = [&](std::string_view step, int batch_size, const std::vector<double>& rates) {
    const auto summary = summarize(rates);
    std::vector<std::string> cells = {std::string(step), std::to_string(batch_size), "-", "-", "-"};
    if (summary) {
      cells[2] = format_number(summary->average);
      cells[3] = format_number(summary->lowest);
      cells[4] = format_number(summary->highest);
    }
    table.add(std::move(cells));
  };
  for (const BatchResult& result : report.results) {
    add("Prefill", result.samples.batch_size, result.samples.prefill_tokens_per_s);
  }
  for (const BatchResult& result : report.results) {
    add("Decode", result.samples.batch_size, result.samples.decode_tokens_per_s);
  }
  return "Throughput, tokens/s\n\n" + table.text();
}

std::string memory_table(const EngineReport& report) {
  Table table(
      {"Batch Size", "First token p50 ms", "p90", "p99", "Decode reads GB/s", "of plain reading %"},
      0);
  for (const BatchResult& result : report.results) {
    const auto first = summarize(result.samples.first_token_s, 1000);
    const auto scaled = [](const std::optional<double>& value, double scale) {
      return value ? format_number(*value * scale, 1) : std::string("-");
    };
    table.add({std::to_string(result.samples.batch_size), format_number(first->p50),
               format_number(first->p90), format_number(first->p99),
               scaled(result.bytes_per_s, 1e-9), scaled(result.share_of_read, 100)});
  }
  std::string out = "First token and memory\n\n" + table.text();
  if (report.plain.buffer_bytes > 0) {
    out += fmt::format("\nplain reading: {:.1f} GB/s with {} threads over {}\n",
                       report.plain.bytes_per_s / 1e9, report.model.num_threads,
                       format_bytes(report.plain.buffer_bytes));
  }
  return out;
}

}  // namespace

std::string engine_tables(const EngineReport& report) {
  std::string out = parameters_table(report) + "\n" + latency_table(report) + "\n" +
                    throughput_table(report) + "\n" + memory_table(report);
  for (const BatchResult& result : report.results) {
    if (result.decode_tokens_per_s) continue;
    out +=
        "-: the first answer ended before the last prompt was done; use a larger "
        "--decode-length\n";
    break;
  }
  return out;
}

std::string engine_json(const EngineReport& report) {
  const BenchFlags& flags = report.flags;
  const ipc::ModelStatus& model = report.model;
  OrderedJson out = {{"model", model.name},
                     {"architecture", model.architecture},
                     {"dtype", model.dtype},
                     {"backend", model.backend},
                     {"isa", model.isa},
                     {"num_threads", model.num_threads},
                     {"prompt_length", flags.prompt_length},
                     {"decode_length", flags.decode_length},
                     {"runs", flags.runs},
                     {"warmups", flags.warmups},
                     {"sampling", flags.sampling.params},
                     {"plain_read_bytes_per_s", report.plain.bytes_per_s},
                     {"plain_read_buffer_bytes", report.plain.buffer_bytes},
                     {"batches", OrderedJson::array()}};
  for (const BatchResult& result : report.results) {
    const BatchSamples& samples = result.samples;
    out["batches"].push_back(
        {{"batch_size", samples.batch_size},
         {"num_runs", samples.prefill_s.size()},
         {"prefill_tokens_per_s", median(samples.prefill_tokens_per_s)},
         {"decode_tokens_per_s", json_or_null(result.decode_tokens_per_s)},
         {"time_to_first_token_ms", summary_json(summarize(samples.first_token_s, 1000))},
         {"inter_token_ms", summary_json(summarize(samples.inter_token_s, 1000))},
         {"decode_bytes_per_s", json_or_null(result.bytes_per_s)},
         {"share_of_plain_read", json_or_null(result.share_of_read)},
         {"prefill_ms", summary_json(summarize(samples.prefill_s, 1000))},
         {"decode_total_ms", summary_json(summarize(samples.decode_total_s, 1000))},
         {"prefill_throughput", summary_json(summarize(samples.prefill_tokens_per_s))},
         {"decode_throughput", summary_json(summarize(samples.decode_tokens_per_s))}});
  }
  return out.dump() + "\n";
}

}  // namespace tgi::bench
