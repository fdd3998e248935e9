#include <string>

#include "base/error.h"
#include "cmd/bench/live_view.h"
#include "cmd/bench/serving_report.h"
#include "cmd/bench/serving_stats.h"
#include "cmd/bench/stats.h"
#include "cmd/bench/table.h"
#include "tests/catch.h"

namespace tgi::bench {
namespace {

RequestRecord answered(double start_s, std::vector<double> output_s, double end_s) {
  RequestRecord record;
  record.planned_s = record.start_s = start_s;
  record.output_s = std::move(output_s);
  record.end_s = end_s;
  record.num_wanted_prompt_tokens = 10;
  record.http_status = 200;
  record.finished = true;
  return record;
}

}  // namespace

TEST_CASE("a summary has average, borders and nearest ranks") {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const auto summary = summarize(values, 10);
  REQUIRE(summary);
  CHECK(summary->count == 100);
  CHECK(summary->average == Approx(505));
  CHECK(summary->lowest == 10);
  CHECK(summary->highest == 1000);
  CHECK(summary->p50 == 500);
  CHECK(summary->p90 == 900);
  CHECK(summary->p99 == 990);
  CHECK_FALSE(summarize({}));
}

TEST_CASE("a histogram counts every value once, outliers in the last bin") {
  std::vector<double> values(99, 1.0);
  for (size_t i = 0; i < 50; ++i) values[i] = 2.0;
  values.push_back(1000);  // above the 99th percentile
  const Bins bins = bin_values(values, 4);
  CHECK(bins.low == 1);
  CHECK(bins.high == 2);
  CHECK(bins.counts == std::vector<size_t>{49, 0, 0, 51});
  CHECK(bin_values({3, 3, 3}, 2).counts == std::vector<size_t>{3, 0});
  CHECK(bin_values({}, 2).counts == std::vector<size_t>{0, 0});
  const auto lines = draw_histogram({0.001, 0.001, 0.002, 0.003}, 2, 10);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "     1.00 -      2.00 ms  ##########  2");
  CHECK(lines[1] == "     2.00 +           ms  ##########  2");
}

TEST_CASE("a gauge is never wider than asked") {
  CHECK(gauge(0, 4) == "[----]");
  CHECK(gauge(0.5, 4) == "[##--]");
  CHECK(gauge(7, 4) == "[####]");
  CHECK(gauge(-1, 4) == "[----]");
}

TEST_CASE("tables are Markdown with aligned columns") {
  Table table({"Step", "ms"});
  table.add({"Prefill", "1.50"});
  table.add({"Decode (token)", "-"});
  CHECK(table.text() ==
        "| Step           |   ms |\n"
        "|----------------|-----:|\n"
        "| Prefill        | 1.50 |\n"
        "| Decode (token) |    - |\n");
  CHECK_THROWS_AS(table.add({"one"}), Error);
  CHECK(summary_cells({"x"}, std::nullopt) ==
        std::vector<std::string>{"x", "-", "-", "-", "-", "-", "-"});
}

TEST_CASE("goodput targets are read") {
  const GoodputTarget target = parse_goodput("ttft:500,itl:50.5");
  CHECK(target.ttft == 500);
  CHECK(target.itl == 50.5);
  CHECK_FALSE(target.e2e);
  for (const std::string_view bad : {"", "ttft", "ttft:", "ttft:x", "ttft:0", "ttft:-1", "ttft:inf",
                                     "tttf:5", "ttft:5,", "ttft:5 ", "ttft:5;itl:3", ":5"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_goodput(bad), Error);
  }
}

TEST_CASE("latencies of a request come from its events and its tokens") {
  RequestRecord record = answered(1, {1.5, 1.6, 1.9}, 2.25);
  auto latency = latency_of(record);
  REQUIRE(latency);
  CHECK(latency->ttft == Approx(500));
  CHECK(*latency->itl == Approx(200));
  CHECK(*latency->tpot == Approx(200));
  CHECK(latency->e2e == Approx(1250));
  record.num_output_tokens = 5;  // some events carried several
  latency = latency_of(record);
  CHECK(*latency->itl == Approx(200));
  CHECK(*latency->tpot == Approx(100));
  CHECK(num_output_tokens(record) == 5);
  CHECK_FALSE(latency_of(answered(0, {1}, 1))->itl);
  CHECK_FALSE(latency_of(answered(0, {}, 1)));
}

TEST_CASE("a request is good when it meets every target") {
  const RequestRecord record = answered(0, {0.4, 0.5}, 0.6);
  CHECK(is_good(record, {.ttft = 400, .itl = 101, .tpot = {}, .e2e = 601}));
  CHECK_FALSE(is_good(record, {.ttft = 399, .itl = 101, .tpot = {}, .e2e = {}}));
  CHECK_FALSE(is_good(record, {.ttft = {}, .itl = 99, .tpot = {}, .e2e = {}}));
  CHECK_FALSE(is_good(record, {.ttft = {}, .itl = {}, .tpot = 99, .e2e = {}}));
  CHECK_FALSE(is_good(record, {.ttft = {}, .itl = {}, .tpot = {}, .e2e = 599}));
  RequestRecord failed = record;
  failed.error_kind = "http 500";
  CHECK_FALSE(is_good(failed, {}));
  RequestRecord cut = record;
  cut.finished = false;
  CHECK_FALSE(is_good(cut, {}));
}

TEST_CASE("a load is summed up with its failures and what was cut off") {
  LoadResult load;
  load.wall_s = 4;
  load.cpu_s = 0.4;
  load.records.push_back(answered(0, {1, 2}, 2));
  load.records.back().num_output_tokens = 6;
  load.records.back().num_prompt_tokens = 12;
  load.records.push_back(answered(0, {0.5, 1.5, 2}, 3));
  load.records.push_back(answered(0, {0.1}, 0.2));
  load.records.back().error_kind = "http 429";
  load.records.back().error = "overloaded, \"busy\"";
  load.records.push_back(answered(2, {3}, 0));
  load.records.back().finished = false;
  const GoodputTarget target{.ttft = 700, .itl = {}, .tpot = {}, .e2e = {}};
  const ServingStats stats = compute_stats(load, target);
  CHECK(stats.num_started == 4);
  CHECK(stats.num_ok == 2);
  CHECK(stats.num_failed == 1);
  CHECK(stats.num_unfinished == 1);
  CHECK(stats.num_good == size_t{1});
  CHECK(stats.num_output_tokens == 6 + 3 + 1);
  CHECK(stats.output_tokens_per_s == Approx(2.5));
  CHECK(stats.requests_per_s == Approx(0.5));
  CHECK(stats.counted_by == TokenCount::kMixed);
  CHECK(stats.num_prompt_tokens == 12);
  CHECK(stats.ttft->count == 3);  // what was cut off had a first token too
  CHECK(stats.itl->count == 3);
  CHECK(stats.e2e->count == 2);
  CHECK(stats.errors.at("http 429").count == 1);
  CHECK(stats.client_cpu_share == Approx(0.1));

  const std::string csv = serving_csv(load, target);
  CHECK_THAT(csv, Catch::Contains("\n2,0.000000,0.000000,0.200000,100.000,,,200.000,10,,,0,1,1,200,"
                                  "http 429,0,\"overloaded, \"\"busy\"\"\"\n"));
  CHECK_THAT(csv,
             Catch::Contains("\n3,2.000000,2.000000,,1000.000,,,,10,,,0,1,1,200,broken off,0,\n"));

  ServingReport report;
  report.server = "http://x";
  report.api = "tgi";
  report.load = "a load";
  report.target = target;
  report.stats = stats;
  const std::string tables = serving_tables(report);
  CHECK_THAT(tables, Catch::Contains("4 requests in 4.00 s: 2 answered, 1 failed, 1 broken off"));
  CHECK_THAT(tables, Catch::Contains("| http 429 | overloaded, \"busy\" |        1 |"));
  CHECK_THAT(tables, Catch::Contains("| Good requests |       0.25 | 1 (25.0 %) |"));
  const auto json = ipc::OrderedJson::parse(serving_json(report));
  CHECK(json["goodput"]["num_good"] == 1);
  CHECK(json["errors"]["http 429"]["count"] == 1);
  CHECK(json["time_to_first_token_ms"]["count"] == 3);
}

TEST_CASE("a load without one answer has a report all the same") {
  ServingReport report;
  report.stats = compute_stats({}, std::nullopt);
  CHECK_THAT(serving_tables(report), Catch::Contains("0 requests in 0.00 s"));
  CHECK(ipc::OrderedJson::parse(serving_json(report))["end_to_end_ms"].is_null());
}

}  // namespace tgi::bench
