#include "cmd/bench/serving_report.h"

#include <fmt/format.h>

#include "cmd/bench/report_json.h"
#include "cmd/bench/table.h"

namespace tgi::bench {
namespace {

using ipc::OrderedJson;

constexpr double kBusyClient = 0.7;  // of a processor: from here on the client may be the limit

std::string describe(const GoodputTarget& target) {
  std::string out;
  const auto add = [&](std::string_view name, const std::optional<double>& limit) {
    if (limit) out += fmt::format("{}{} <= {} ms", out.empty() ? "" : ", ", name, *limit);
  };
  add("ttft", target.ttft);
  add("itl", target.itl);
  add("tpot", target.tpot);
  add("e2e", target.e2e);
  return out;
}

std::string latency_table(const ServingStats& stats) {
  Table table(summary_heads({"Latency, ms"}));
  table.add(summary_cells({"Time to first token"}, stats.ttft));
  table.add(summary_cells({"Inter-token (between events)"}, stats.itl));
  table.add(summary_cells({"Time per output token"}, stats.tpot));
  table.add(summary_cells({"End to end"}, stats.e2e));
  return table.text();
}

std::string throughput_table(const ServingReport& report) {
  const ServingStats& stats = report.stats;
  Table table({"Throughput", "Per second", "In all"});
  table.add({"Requests", format_number(stats.requests_per_s), std::to_string(stats.num_ok)});
  table.add({"Output tokens", format_number(stats.output_tokens_per_s),
             std::to_string(stats.num_output_tokens)});
  table.add({"Prompt tokens", format_number(stats.prompt_tokens_per_s),
             stats.num_prompt_tokens ? std::to_string(*stats.num_prompt_tokens)
                                     : fmt::format("{} wanted", stats.num_wanted_prompt_tokens)});
  if (stats.num_cached_tokens) {
    table.add({"of them cached", "", std::to_string(*stats.num_cached_tokens)});
  }
  if (stats.num_good && stats.wall_s > 0) {
    const auto num_good = static_cast<double>(*stats.num_good);
    table.add(
        {"Good requests", format_number(num_good / stats.wall_s),
         fmt::format("{} ({:.1f} %)", *stats.num_good,
                     stats.num_started > 0 ? 100 * num_good / static_cast<double>(stats.num_started)
                                           : 0.0)});
  }
  std::string out = table.text();
  out += fmt::format("tokens are {}\n", bench::describe(stats.counted_by));
  if (report.target) out += fmt::format("good: {}\n", describe(*report.target));
  return out;
}

std::string error_table(const ServingStats& stats) {
  if (stats.errors.empty()) return "";
  Table table({"Error", "The first one says", "Requests"}, 2);
  for (const auto& [kind, group] : stats.errors) {
    table.add({kind, group.example, std::to_string(group.count)});
  }
  return "\n" + table.text();
}

std::string client_line(const ServingStats& stats) {
  std::string out = fmt::format("client: {:.1f} % of a processor", 100 * stats.client_cpu_share);
  if (stats.client_us_per_event) {
    out += fmt::format(", {:.1f} us per event", *stats.client_us_per_event);
  }
  if (stats.late) out += fmt::format("; starts late by {:.2f} ms (p99)", stats.late->p99);
  out += '\n';
  if (stats.client_cpu_share > kBusyClient) {
    out += "warning: this client was busy itself; the server may be faster than measured here\n";
  }
  return out;
}

OrderedJson to_json(const std::optional<int64_t>& value) {
  return value ? OrderedJson(*value) : OrderedJson();
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string csv_number(const std::optional<int64_t>& value) {
  return value ? std::to_string(*value) : std::string();
}

std::string csv_time(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : std::string();
}

}  // namespace

std::string serving_tables(const ServingReport& report) {
  const ServingStats& stats = report.stats;
  std::string out = fmt::format("{} ({}){}\n{}\n", report.server, report.api,
                                report.model.empty() ? "" : ", model " + report.model, report.load);
  if (report.note) out += *report.note + "\n";
  out += fmt::format(
      "{} requests in {:.2f} s: {} answered, {} failed{}\n\n", stats.num_started, stats.wall_s,
      stats.num_ok, stats.num_failed,
      stats.num_unfinished > 0 ? fmt::format(", {} broken off", stats.num_unfinished) : "");
  out += latency_table(stats) + "\n" + throughput_table(report) + error_table(stats) + "\n" +
         client_line(stats);
  return out;
}

std::string serving_json(const ServingReport& report) {
  const ServingStats& stats = report.stats;
  OrderedJson errors = OrderedJson::object();
  for (const auto& [kind, group] : stats.errors) {
    errors[kind] = {{"count", group.count}, {"example", group.example}};
  }
  OrderedJson out = {{"server", report.server},
                     {"api", report.api},
                     {"model", report.model},
                     {"load", report.load},
                     {"num_requests", stats.num_started},
                     {"num_ok", stats.num_ok},
                     {"num_failed", stats.num_failed},
                     {"num_broken_off", stats.num_unfinished},
                     {"wall_s", stats.wall_s},
                     {"time_to_first_token_ms", summary_json(stats.ttft)},
                     {"inter_token_ms", summary_json(stats.itl)},
                     {"time_per_output_token_ms", summary_json(stats.tpot)},
                     {"end_to_end_ms", summary_json(stats.e2e)},
                     {"start_late_ms", summary_json(stats.late)},
                     {"requests_per_s", stats.requests_per_s},
                     {"output_tokens_per_s", stats.output_tokens_per_s},
                     {"prompt_tokens_per_s", json_or_null(stats.prompt_tokens_per_s)},
                     {"num_output_tokens", stats.num_output_tokens},
                     {"num_output_events", stats.num_events},
                     {"num_prompt_tokens", to_json(stats.num_prompt_tokens)},
                     {"num_prompt_tokens_wanted", stats.num_wanted_prompt_tokens},
                     {"num_cached_tokens", to_json(stats.num_cached_tokens)},
                     {"tokens_counted_by", bench::describe(stats.counted_by)},
                     {"errors", std::move(errors)},
                     {"goodput", nullptr},
                     {"client_cpu_share", stats.client_cpu_share},
                     {"client_us_per_event", json_or_null(stats.client_us_per_event)}};
  if (report.target && stats.num_good) {
    out["goodput"] = {{"target", describe(*report.target)},
                      {"num_good", *stats.num_good},
                      {"good_requests_per_s",
                       stats.wall_s > 0 ? static_cast<double>(*stats.num_good) / stats.wall_s : 0}};
  }
  // What a server says of its errors need not be UTF-8.
  return out.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string serving_csv(const LoadResult& load, const std::optional<GoodputTarget>& target) {
  std::string out =
      "index,planned_s,start_s,end_s,ttft_ms,mean_itl_ms,tpot_ms,e2e_ms,wanted_prompt_tokens,"
      "prompt_tokens,cached_tokens,wanted_output_tokens,output_tokens,output_events,http_status,"
      "outcome,good,error\n";
  size_t index = 0;
  for (const RequestRecord& record : load.records) {
    const auto latency = latency_of(record);
    const auto time = [&](auto member) -> std::string {
      return latency ? csv_time((*latency).*member) : std::string();
    };
    const std::string outcome = !record.finished            ? "broken off"
                                : record.error_kind.empty() ? "ok"
                                                            : record.error_kind;
    out += fmt::format(
        "{},{:.6f},{:.6f},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", index++,
        record.planned_s, record.start_s,
        record.finished ? fmt::format("{:.6f}", record.end_s) : "", time(&RequestLatency::ttft),
        time(&RequestLatency::itl), time(&RequestLatency::tpot),
        record.finished ? time(&RequestLatency::e2e) : "", record.num_wanted_prompt_tokens,
        csv_number(record.num_prompt_tokens), csv_number(record.num_cached_tokens),
        record.num_wanted_output_tokens, num_output_tokens(record), record.output_s.size(),
        record.http_status, csv_cell(outcome),
        !target                    ? ""
        : is_good(record, *target) ? "1"
                                   : "0",
        csv_cell(record.error));
  }
  return out;
}

}  // namespace tgi::bench
