// What a load test asks and when: requests at a fixed concurrency, at Poisson arrivals, or as a
// recorded trace has them. Everything follows from the seed, so that two runs ask the same. Plain
// values without threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tgi::bench {

// A stretch of a prompt. Equal seeds give equal tokens, which is what a server's prefix cache can
// find again; the shorter of two stretches with one seed is a prefix of the longer.
struct PromptPiece {
  uint64_t seed = 0;
  int64_t num_tokens = 0;
  bool operator==(const PromptPiece&) const = default;
};

struct PlannedRequest {
  double at_s = 0;  // after the beginning; not looked at with a fixed concurrency
  std::vector<PromptPiece> prompt;
  int64_t num_output_tokens = 0;
};

int64_t num_prompt_tokens(const PlannedRequest& request);

// The request with this number, or nothing when there are no more. Called once for each number, in
// order.
using RequestSource = std::function<std::optional<PlannedRequest>(size_t index)>;

struct LoadPlan {
  RequestSource source;
  bool open_loop = false;             // at_s says when; otherwise as soon as one ends
  int64_t max_running = 0;            // at once; 0: no limit
  std::optional<double> start_for_s;  // nothing is started after this
};

struct PromptShape {
  int64_t num_prompt_tokens = 0;
  int64_t num_shared_tokens = 0;  // of them, at the front, the same in all requests
  int64_t num_output_tokens = 0;
  uint64_t seed = 0;
};

// `num_requests` may be absent: without end.
RequestSource uniform_source(const PromptShape& shape, std::optional<int64_t> num_requests);

// Arrival times with exponential gaps, `rate_per_s` on average, until there are `num_requests` or
// `duration_s` is reached; REQUIRES: one of the two is there. The same on every machine.
std::vector<double> poisson_arrivals(double rate_per_s,
                                     std::optional<int64_t> num_requests,
                                     std::optional<double> duration_s,
                                     uint64_t seed);
RequestSource poisson_source(const PromptShape& shape, std::vector<double> arrivals_s);

// One line of a trace; both formats come to this.
struct TraceRequest {
  double at_s = 0;  // after the first
  int64_t num_prompt_tokens = 0;
  int64_t num_output_tokens = 0;
  std::vector<uint64_t> block_hashes;  // of kTraceBlockTokens tokens each, from the front; may lack
};

struct TraceOptions {
  double speed = 1;                         // 2: twice as fast as recorded
  double length_scale = 1;                  // of prompts and answers
  std::optional<int64_t> max_total_tokens;  // prompts, then answers, are shortened to fit
  int64_t num_shared_tokens = 0;            // for traces without hashes
  uint64_t seed = 0;
};

struct TracePlan {
  std::vector<PlannedRequest> requests;
  int64_t num_shortened = 0;
};
TracePlan plan_trace(const std::vector<TraceRequest>& trace, const TraceOptions& options);
RequestSource list_source(std::vector<PlannedRequest> requests);

}  // namespace tgi::bench
