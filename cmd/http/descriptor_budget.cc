#include "cmd/http/descriptor_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "base/error.h"
#include "cmd/http/turned_away.h"

namespace tgi::http {
namespace {

// Standard streams, listener, signals, epolls, the trace exporter, and short questions to the
// daemon for /health, /metrics and /tokenize.
constexpr int64_t kNumOthers = 48;
constexpr int64_t kReserve = kNumOthers + static_cast<int64_t>(TurnedAway::kMaxOpen);
constexpr int64_t kConnectionsBeyondRequests = 1024;
// Its socket to the daemon, and both ends of its line where it goes on without its client.
constexpr int64_t kPerRequest = 3;
constexpr int64_t kLeast = kReserve + kPerRequest + 2;  // one, its client, and one who is told so

}  // namespace

DescriptorBudget plan_descriptors(int64_t limit, int64_t num_requests) {
  if (limit < kLeast) {
    throw Error(Code::kInvalidArgument,
                fmt::format("open files are limited to {}, expected at least {}; raise the limit "
                            "(ulimit -n, LimitNOFILE= of a service)",
                            limit, kLeast));
  }
  num_requests = std::min<int64_t>(num_requests, INT_MAX);
  const int64_t asked_connections = num_requests + kConnectionsBeyondRequests;
  const int64_t wanted = kReserve + kPerRequest * num_requests + asked_connections;
  if (limit >= wanted) return {.num_requests = num_requests, .num_connections = asked_connections};
  const int64_t left = limit - kReserve;
  DescriptorBudget out;
  out.num_requests = std::min(num_requests, left / (kPerRequest + 2));
  out.num_connections = std::min(asked_connections, left - kPerRequest * out.num_requests);
  out.notice = fmt::format(
      "open files are limited to {} (ulimit -n): at most {} requests at once and {} connections, "
      "others get 429; {} would need {}",
      limit, out.num_requests, out.num_connections,
      out.num_requests < num_requests ? fmt::format("--max-concurrent-requests {}", num_requests)
                                      : fmt::format("{} connections", asked_connections),
      wanted);
  return out;
}

}  // namespace tgi::http
