// Starts requests when the plan says so and collects their records. One thread.
#pragma once

#include <deque>
#include <functional>

#include "cmd/bench/load_plan.h"
#include "cmd/bench/transport.h"

namespace tgi::bench {

struct LoadResult {
  std::deque<RequestRecord> records;  // in the order of their start
  double wall_s = 0;                  // from the beginning to the end of the last one
  double cpu_s = 0;                   // of this process in that time, user and system
  bool interrupted = false;           // records that were cut off are not finished
};

struct LoadProgress {
  const std::deque<RequestRecord>& records;
  double now_s = 0;
  size_t num_running = 0;
  size_t num_finished = 0;
};

// Called a few times a second, for the live view.
using OnProgress = std::function<void(const LoadProgress&)>;

LoadResult run_load(const LoadPlan& plan, Transport& transport, const OnProgress& on_progress);

}  // namespace tgi::bench
