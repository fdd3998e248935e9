#include "cmd/bench/load_plan.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "base/error.h"
#include "cmd/bench/trace.h"

namespace tgi::bench {
namespace {

constexpr uint64_t kSharedSeed = 0x5EED;

// Seeds of different kinds and numbers must not meet (splitmix64's finaliser).
uint64_t mix(uint64_t seed, uint64_t kind, uint64_t number) {
  uint64_t x = seed * 0x9E3779B97F4A7C15u + kind * 0xD1B54A32D192ED03u + number + 1;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

enum : uint64_t { kShared = 1, kOwn = 2, kBlock = 3 };

std::vector<PromptPiece> shared_and_own(int64_t num_tokens,
                                        int64_t num_shared_tokens,
                                        uint64_t seed,
                                        uint64_t number) {
  std::vector<PromptPiece> out;
  const int64_t num_shared = std::min(num_tokens, num_shared_tokens);
  if (num_shared > 0) out.push_back({mix(seed, kShared, kSharedSeed), num_shared});
  if (num_tokens > num_shared) out.push_back({mix(seed, kOwn, number), num_tokens - num_shared});
  return out;
}

PlannedRequest uniform_request(const PromptShape& shape, size_t index, double at_s) {
  return {
      .at_s = at_s,
      .prompt = shared_and_own(shape.num_prompt_tokens, shape.num_shared_tokens, shape.seed, index),
      .num_output_tokens = shape.num_output_tokens};
}

std::vector<PromptPiece> traced_prompt(const TraceRequest& request,
                                       int64_t num_tokens,
                                       const TraceOptions& options,
                                       uint64_t number) {
  if (request.block_hashes.empty()) {
    return shared_and_own(num_tokens, options.num_shared_tokens, options.seed, number);
  }
  // A scaled prompt has scaled blocks, so that as much of it is shared as was recorded.
  const auto block_tokens = std::max<int64_t>(
      1, std::llround(static_cast<double>(kTraceBlockTokens) * options.length_scale));
  std::vector<PromptPiece> out;
  int64_t left = num_tokens;
  for (const uint64_t hash : request.block_hashes) {
    if (left == 0) break;
    out.push_back({mix(options.seed, kBlock, hash), std::min(left, block_tokens)});
    left -= out.back().num_tokens;
  }
  if (left > 0) out.push_back({mix(options.seed, kOwn, number), left});
  return out;
}

}  // namespace

int64_t num_prompt_tokens(const PlannedRequest& request) {
  int64_t sum = 0;
  for (const PromptPiece& piece : request.prompt) sum += piece.num_tokens;
  return sum;
}

RequestSource uniform_source(const PromptShape& shape, std::optional<int64_t> num_requests) {
  return [shape, num_requests](size_t index) -> std::optional<PlannedRequest> {
    if (num_requests && static_cast<int64_t>(index) >= *num_requests) return std::nullopt;
    return uniform_request(shape, index, 0);
  };
}

std::vector<double> poisson_arrivals(double rate_per_s,
                                     std::optional<int64_t> num_requests,
                                     std::optional<double> duration_s,
                                     uint64_t seed) {
  TGI_CHECK(rate_per_s > 0 && (num_requests || duration_s));
  std::mt19937_64 random(seed);
  std::vector<double> out;
  double at_s = 0;
  while (!num_requests || static_cast<int64_t>(out.size()) < *num_requests) {
    // By hand: std::exponential_distribution is another one in every library.
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;  // [0, 1)
    at_s -= std::log1p(-uniform) / rate_per_s;
    if (duration_s && at_s > *duration_s) break;
    out.push_back(at_s);
  }
  return out;
}

RequestSource poisson_source(const PromptShape& shape, std::vector<double> arrivals_s) {
  return [shape, arrivals = std::move(arrivals_s)](size_t index) -> std::optional<PlannedRequest> {
    if (index >= arrivals.size()) return std::nullopt;
    return uniform_request(shape, index, arrivals[index]);
  };
}

TracePlan plan_trace(const std::vector<TraceRequest>& trace, const TraceOptions& options) {
  const auto scaled = [&](int64_t length) {
    return std::max<int64_t>(1, std::llround(static_cast<double>(length) * options.length_scale));
  };
  TracePlan plan;
  for (const TraceRequest& request : trace) {
    int64_t prompt = scaled(request.num_prompt_tokens);
    int64_t output = scaled(request.num_output_tokens);
    if (options.max_total_tokens && prompt + output > *options.max_total_tokens) {
      prompt = std::clamp<int64_t>(*options.max_total_tokens - output, 1, prompt);
      output = std::min(output, *options.max_total_tokens - prompt);
      ++plan.num_shortened;
    }
    plan.requests.push_back(
        {.at_s = request.at_s / options.speed,
         .prompt = traced_prompt(request, prompt, options, plan.requests.size()),
         .num_output_tokens = output});
  }
  return plan;
}

RequestSource list_source(std::vector<PlannedRequest> requests) {
  return [list = std::move(requests)](size_t index) -> std::optional<PlannedRequest> {
    if (index >= list.size()) return std::nullopt;
    return list[index];
  };
}

}  // namespace tgi::bench
