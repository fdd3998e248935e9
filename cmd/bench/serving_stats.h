// What follows from the records of a load: latencies, rates, errors, goodput. Plain functions
// without threads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cmd/bench/load_driver.h"
#include "cmd/bench/stats.h"

namespace tgi::bench {

// What a request has to reach to be a good one; in ms. `itl` is the mean time between the events of
// its answer, `tpot` (time per output token) the same between tokens, should an event carry
// several.
struct GoodputTarget {
  std::optional<double> ttft;
  std::optional<double> itl;
  std::optional<double> tpot;
  std::optional<double> e2e;
};

// "ttft:500,itl:50"; throws kInvalidArgument.
GoodputTarget parse_goodput(std::string_view text);

// In ms, of one request.
struct RequestLatency {
  double ttft = 0;
  std::optional<double> itl;   // needs two events
  std::optional<double> tpot;  // needs two tokens
  double e2e = 0;
};

// Nothing for a request without output.
std::optional<RequestLatency> latency_of(const RequestRecord& record);

int64_t num_output_tokens(const RequestRecord& record);  // by usage when given, else events

bool is_good(const RequestRecord& record, const GoodputTarget& target);

enum class TokenCount { kUsage, kEvents, kMixed };
std::string_view describe(TokenCount count);

struct ErrorGroup {
  size_t count = 0;
  std::string example;
};

struct ServingStats {
  size_t num_started = 0;
  size_t num_ok = 0;
  size_t num_failed = 0;
  size_t num_unfinished = 0;  // cut off by Ctrl-C
  double wall_s = 0;

  // In ms. The first two also of requests that were cut off.
  std::optional<Summary> ttft;
  std::optional<Summary> itl;  // between any two events of one answer
  std::optional<Summary> tpot;
  std::optional<Summary> e2e;
  std::optional<Summary> late;  // started after the planned time

  TokenCount counted_by = TokenCount::kUsage;
  int64_t num_events = 0;
  int64_t num_output_tokens = 0;
  int64_t num_wanted_prompt_tokens = 0;
  std::optional<int64_t> num_prompt_tokens;  // as far as the server said
  std::optional<int64_t> num_cached_tokens;
  double requests_per_s = 0;
  double output_tokens_per_s = 0;
  std::optional<double> prompt_tokens_per_s;

  std::map<std::string, ErrorGroup> errors;  // by kind
  std::optional<size_t> num_good;            // with a target

  double client_cpu_share = 0;                // of one processor
  std::optional<double> client_us_per_event;  // processor time
};

ServingStats compute_stats(const LoadResult& load, const std::optional<GoodputTarget>& target);

}  // namespace tgi::bench
