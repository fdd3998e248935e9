// bench_gateway: what `tgi serve` adds to each token, in time and in processor time, with a daemon
// that has no engine. The same client reads the same streams from the daemon's socket and through
// the gateway; what the gateway adds is the difference. Exit status 1 when a token was lost,
// doubled or given to another. See docs/serving.md; scripts/bench/bench_gateway runs it.
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nlohmann_json.h"
#include "tests/gateway_load/load_run.h"
#include "tests/ipc/fake_daemon.h"

namespace tgi {
namespace {

struct WayRow {
  Way way;
  std::string_view name;
};
constexpr std::array kWays = {
    WayRow{Way::kSocket, "socket"},
    WayRow{Way::kNative, "/generate_stream"},
    WayRow{Way::kChat, "/v1/chat/completions"},
};

struct Flags {
  std::string tgi;
  std::vector<std::string> only;
  double seconds = 5;
  int repeats = 1;
  bool json = false;
};

// Medians over the repeats of one case by one way.
struct Figures {
  const LoadCase* load = nullptr;
  const WayRow* way = nullptr;
  size_t num_tokens = 0;  // of all repeats
  size_t num_broken = 0;
  std::string first_problem;
  double p50_ms = 0;
  double p99_ms = 0;
  double quiet_p99_ms = 0;  // of the repeat with the lowest: least disturbed by other programs
  double max_ms = 0;        // of all repeats
  double tokens_per_s = 0;
  double gateway_us_per_token = 0;
  double gateway_cpu_share = 0;  // of one processor
  double bench_cpu_share = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<LoadCase> cases(double seconds) {
  const auto paced = [&](std::string name, size_t streams, double rate, bool in_step) {
    const auto tokens = static_cast<size_t>(std::max<long>(std::lround(rate * seconds), 1));
    return LoadCase{.name = std::move(name),
                    .pace = {.num_streams = streams, .tokens_per_s = rate, .in_step = in_step},
                    .num_tokens = tokens};
  };
  const auto unpaced = [](std::string name, size_t streams, size_t tokens) {
    return LoadCase{.name = std::move(name),
                    .pace = {.num_streams = streams, .tokens_per_s = 0},
                    .num_tokens = tokens};
  };
  return {paced("1", 1, 50, false),           paced("50", 50, 50, false),
          paced("200", 200, 50, false),       paced("200-in-step", 200, 50, true),
          paced("1000", 1000, 10, false),     paced("1000-in-step", 1000, 10, true),
          unpaced("unlimited-1", 1, 100'000), unpaced("unlimited-32", 32, 4'000)};
}

Figures summarise(const LoadCase& load, const WayRow& way, const std::vector<LoadResult>& runs) {
  Figures out;
  out.load = &load;
  out.way = &way;
  std::vector<double> p50s, p99s, rates, costs, shares, own;
  for (const LoadResult& run : runs) {
    out.num_tokens += run.num_tokens;
    out.num_broken += run.num_broken;
    if (out.first_problem.empty()) out.first_problem = run.first_problem;
    if (run.latencies_ns.empty()) continue;
    const auto num_tokens = static_cast<double>(run.num_tokens);
    p50s.push_back(percentile_ms(run.latencies_ns, 50));
    p99s.push_back(percentile_ms(run.latencies_ns, 99));
    out.max_ms = std::max(out.max_ms, percentile_ms(run.latencies_ns, 100));
    rates.push_back(num_tokens / run.wall_s);
    costs.push_back(static_cast<double>(run.gateway_cpu_ns) / 1e3 / num_tokens);
    shares.push_back(static_cast<double>(run.gateway_cpu_ns) / 1e9 / run.wall_s);
    own.push_back(static_cast<double>(run.bench_cpu_ns) / 1e9 / run.wall_s);
  }
  if (p50s.empty()) return out;
  out.p50_ms = median(p50s);
  out.p99_ms = median(p99s);
  out.quiet_p99_ms = *std::min_element(p99s.begin(), p99s.end());
  out.tokens_per_s = median(rates);
  out.gateway_us_per_token = median(costs);
  out.gateway_cpu_share = median(shares);
  out.bench_cpu_share = median(own);
  return out;
}

nlohmann::ordered_json to_json(const Figures& figures, const Figures& socket) {
  const bool paced = figures.load->pace.tokens_per_s > 0;
  const bool gateway = figures.way->way != Way::kSocket;
  nlohmann::ordered_json out = {{"case", figures.load->name},
                                {"way", figures.way->name},
                                {"num_streams", figures.load->pace.num_streams},
                                {"tokens_per_s_each", figures.load->pace.tokens_per_s},
                                {"in_step", figures.load->pace.in_step},
                                {"num_tokens", figures.num_tokens},
                                {"num_broken_streams", figures.num_broken},
                                {"tokens_per_s", figures.tokens_per_s},
                                {"bench_cpu_share", figures.bench_cpu_share}};
  if (paced) {
    out["latency_ms"] = {{"p50", figures.p50_ms}, {"p99", figures.p99_ms}, {"max", figures.max_ms}};
  }
  if (gateway) {
    out["gateway_us_per_token"] = figures.gateway_us_per_token;
    out["gateway_cpu_share"] = figures.gateway_cpu_share;
  }
  if (paced && gateway) {
    out["added_ms"] = {{"p50", figures.p50_ms - socket.p50_ms},
                       {"p99", figures.p99_ms - socket.p99_ms},
                       {"quiet_p99", figures.quiet_p99_ms - socket.quiet_p99_ms}};
  }
  return out;
}

void print_head() {
  fmt::print(
      "| streams | tokens/s each | by | broken | tokens/s | p50 / p99 / max ms | added p50 / p99 "
      "ms "
      "| gateway µs/token | of one processor |\n|---|---:|---|---:|---:|---:|---:|---:|---:|\n");
}

void print_row(const Figures& figures, const Figures& socket) {
  const Pace& pace = figures.load->pace;
  const bool paced = pace.tokens_per_s > 0;
  const bool gateway = figures.way->way != Way::kSocket;
  fmt::print(
      "| {}{} | {} | {} | {} | {:.0f} | {} | {} | {} | {} |\n", pace.num_streams,
      pace.in_step ? " in step" : "", paced ? fmt::format("{}", pace.tokens_per_s) : "unlimited",
      figures.way->name, figures.num_broken, figures.tokens_per_s,
      paced
          ? fmt::format("{:.3f} / {:.3f} / {:.2f}", figures.p50_ms, figures.p99_ms, figures.max_ms)
          : "",
      paced && gateway ? fmt::format("{:.3f} / {:.3f}", figures.p50_ms - socket.p50_ms,
                                     figures.p99_ms - socket.p99_ms)
                       : "",
      gateway ? fmt::format("{:.1f}", figures.gateway_us_per_token) : "",
      gateway ? fmt::format("{:.0f} %", 100 * figures.gateway_cpu_share) : "");
  std::fflush(stdout);
}

void allow_many_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run(const Flags& flags) {
  allow_many_descriptors();
  const TempFolder folder;
  const std::string socket = folder.file("tgid.sock");
  StandInDaemon daemon(socket);
  const GatewayProcess gateway(flags.tgi, socket, folder.file("gateway.log"));
  fmt::print(stderr, "the gateway is process {}\n", gateway.pid());
  if (!flags.json) print_head();
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  size_t num_broken = 0;
  const std::vector<LoadCase> known = cases(flags.seconds);
  for (const LoadCase& load : known) {
    if (!flags.only.empty() && std::ranges::count(flags.only, load.name) == 0) continue;
    std::array<std::vector<LoadResult>, kWays.size()> runs;
    // The ways take turns, so that a slow minute of the machine meets all.
    for (int repeat = 0; repeat < flags.repeats; ++repeat) {
      for (size_t i = 0; i < kWays.size(); ++i) {
        runs[i].push_back(run_load(load, kWays[i].way, daemon, socket, gateway));
      }
    }
    const Figures by_socket = summarise(load, kWays[0], runs[0]);
    for (size_t i = 0; i < kWays.size(); ++i) {
      const Figures figures = summarise(load, kWays[i], runs[i]);
      num_broken += figures.num_broken;
      if (!figures.first_problem.empty()) {
        fmt::print(stderr, "error: {} streams by {}: {}\n", load.name, kWays[i].name,
                   figures.first_problem);
      }
      flags.json ? all.push_back(to_json(figures, by_socket)) : print_row(figures, by_socket);
    }
  }
  if (flags.json) fmt::print("{}\n", all.dump(1));
  return num_broken == 0 ? 0 : 1;
}

int bench_gateway(int argc, char** argv) {
  CLI::App app("What tgi serve adds to each token, with a daemon that has no engine");
  Flags flags;
  flags.tgi = (std::filesystem::path(argv[0]).parent_path() / "tgi").string();
  std::vector<std::string> names;
  for (const LoadCase& load : cases(1)) names.push_back(load.name);
  app.add_option("--tgi", flags.tgi, "the program to measure; default: the one beside this");
  app.add_option("--only", flags.only, "these cases alone")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  app.add_option("--seconds", flags.seconds, "of the streams that have a pace (5)")
      ->check(CLI::Range(0.1, 600.0));
  app.add_option("--repeats", flags.repeats, "the figures are medians over so many (1)")
      ->check(CLI::Range(1, 100));
  app.add_flag("--json", flags.json, "an array with an object for each row");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(flags);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace tgi

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  return tgi::bench_gateway(argc, argv);
}
