#include "cmd/bench/history.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <vector>

#include "base/error.h"
#include "cmd/bench/table.h"
#include "cmd/session.h"

namespace tgi::bench {
namespace {

constexpr std::string_view kEngine = "engine";
constexpr std::string_view kServing = "serving";

void keep(const BenchmarkRecord& record) {
  try {
    Store::open().add_benchmark(record);
  } catch (const Error& error) {
    Session::say(fmt::format("not kept for `tgi bench --history`: {}", error.what()));
  }
}

// "12.3", or "-" where the result has no such number.
std::string number_at(const Json& result, const char* pointer, int num_decimals = 1) {
  const Json::json_pointer path(pointer);
  const bool is_number = result.contains(path) && result.at(path).is_number();
  return is_number ? format_number(result.at(path).get<double>(), num_decimals) : "-";
}

std::string text_or(const std::string& text, std::string_view fallback) {
  return text.empty() ? std::string(fallback) : text;
}

std::string local_time(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm local{};
  ::localtime_r(&time, &local);
  return fmt::format("{:%Y-%m-%d %H:%M}", local);
}

std::vector<std::string> front_cells(const BenchmarkRecord& record) {
  const std::string on = fmt::format("{} {}", record.backend, record.isa);
  return {local_time(record.measured_at), text_or(record.model, "-"),
          record.backend.empty() ? "-" : on, text_or(record.dtype, "-")};
}

void add_cells(Table& table, const BenchmarkRecord& record, std::vector<std::string> cells) {
  std::vector<std::string> row = front_cells(record);
  row.insert(row.end(), cells.begin(), cells.end());
  table.add(std::move(row));
}

// One line a batch size.
void add_engine(Table& table, const BenchmarkRecord& record) {
  if (!record.result.contains("batches") || !record.result["batches"].is_array()) return;
  for (const Json& batch : record.result["batches"]) {
    add_cells(table, record,
              {fmt::format("batch of {}, {} + {} tokens", number_at(batch, "/batch_size", 0),
                           number_at(record.settings, "/prompt_length", 0),
                           number_at(record.settings, "/decode_length", 0)),
               number_at(batch, "/prefill_tokens_per_s"), number_at(batch, "/decode_tokens_per_s"),
               number_at(batch, "/time_to_first_token_ms/p50"),
               number_at(batch, "/inter_token_ms/p50", 2)});
  }
}

void add_serving(Table& table, const BenchmarkRecord& record) {
  const std::string load = record.settings.value("load", "");
  add_cells(table, record,
            {text_or(load, "load"), number_at(record.result, "/prompt_tokens_per_s"),
             number_at(record.result, "/output_tokens_per_s"),
             number_at(record.result, "/time_to_first_token_ms/p50"),
             number_at(record.result, "/inter_token_ms/p50", 2)});
}

}  // namespace

void keep_engine_bench(const EngineReport& report) {
  const BenchFlags& flags = report.flags;
  const ipc::ModelStatus& model = report.model;
  BenchmarkRecord record;
  record.kind = kEngine;
  record.model = model.name;
  record.backend = model.backend;
  record.isa = model.isa;
  record.dtype = model.quantize == "none" || model.quantize.empty() ? model.dtype : model.quantize;
  record.settings = {{"prompt_length", flags.prompt_length},
                     {"decode_length", flags.decode_length},
                     {"runs", flags.runs},
                     {"warmups", flags.warmups},
                     {"seed", flags.seed},
                     {"num_threads", model.num_threads},
                     {"num_shard", model.num_shard}};
  record.result = Json::parse(engine_json(report));
  record.version = ipc::kVersion;
  keep(record);
}

void keep_serving_bench(const ServingReport& report, const BenchFlags& flags) {
  BenchmarkRecord record;
  record.kind = kServing;
  record.model = report.model;
  record.settings = {{"server", report.server},
                     {"api", report.api},
                     {"load", report.load},
                     {"prompt_length", flags.prompt_length},
                     {"decode_length", flags.decode_length},
                     {"seed", flags.seed}};
  record.result = Json::parse(serving_json(report));
  record.version = ipc::kVersion;
  keep(record);
}

std::string history_table(const Store& store, const std::string& model, int64_t limit) {
  const auto records = store.benchmarks({.model = model}, limit);
  if (records.empty()) return "no benchmarks yet; `tgi bench` makes one\n";
  Table table({"When", "Model", "Backend", "dtype", "Load", "Prompt tokens/s", "Output tokens/s",
               "First token p50 ms", "Between p50 ms"},
              5);
  for (const BenchmarkRecord& record : records) {
    record.kind == kEngine ? add_engine(table, record) : add_serving(table, record);
  }
  return table.text();
}

std::string history_json(const Store& store, const std::string& model, int64_t limit) {
  Json out = Json::array();
  for (const BenchmarkRecord& record : store.benchmarks({.model = model}, limit)) {
    out.push_back({{"measured_at", record.measured_at},
                   {"kind", record.kind},
                   {"model", record.model},
                   {"backend", record.backend},
                   {"isa", record.isa},
                   {"dtype", record.dtype},
                   {"settings", record.settings},
                   {"result", record.result},
                   {"version", record.version}});
  }
  return out.dump() + "\n";
}

}  // namespace tgi::bench
