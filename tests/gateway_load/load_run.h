// One measurement: so many streams at once, by one way, until all have ended. One thread, epoll.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/gateway_load/gateway_process.h"
#include "tests/gateway_load/reply_reader.h"
#include "tests/gateway_load/stand_in_daemon.h"

namespace tgi {

struct LoadCase {
  std::string name;
  Pace pace;
  size_t num_tokens = 0;  // of each stream
};

struct LoadResult {
  size_t num_tokens = 0;  // received, of all streams
  size_t num_broken = 0;  // streams that lost, mixed or repeated something, or failed
  std::string first_problem;
  std::vector<int64_t> latencies_ns;  // from writing to receiving, sorted
  double wall_s = 0;                  // from the first token written until the last stream ended
  int64_t gateway_cpu_ns = 0;         // in that time
  int64_t bench_cpu_ns = 0;           // of this process: client and stand-in
};

// In ms: of `latencies_ns`, which are sorted and not empty.
double percentile_ms(const std::vector<int64_t>& latencies_ns, double percent);

// Throws Error when connections can't be made or the streams don't end in time.
LoadResult run_load(const LoadCase& load,
                    Way way,
                    StandInDaemon& daemon,
                    const std::string& socket_path,
                    const GatewayProcess& gateway);

}  // namespace tgi
