// How a load test talks to a server: many requests at once on one thread, each of which leaves a
// record of what came when. Implemented over the daemon's socket and over HTTP.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmd/bench/load_plan.h"

namespace tgi::bench {

using BenchClock = std::chrono::steady_clock;

// One request, as the client saw it. Times in seconds after the load began.
struct RequestRecord {
  double planned_s = 0;          // when it should have been started
  double start_s = 0;            // when it was
  double end_s = 0;              // when the answer or the error was complete
  std::vector<double> output_s;  // when each event with output came: one token, or several
  int64_t num_wanted_prompt_tokens = 0;
  int64_t num_wanted_output_tokens = 0;
  std::optional<int64_t> num_prompt_tokens;  // these three as the server counts
  std::optional<int64_t> num_output_tokens;
  std::optional<int64_t> num_cached_tokens;
  int http_status = 0;
  std::string error_kind;  // "": it succeeded
  std::string error;       // in the words of the server or the system
  bool finished = false;

  bool ok() const { return finished && error_kind.empty(); }
};

// Belongs to one thread.
class Transport {
 public:
  virtual ~Transport() = default;

  // Times in records are counted from now.
  virtual void begin() = 0;

  // Begins one request. `record` is filled until it is finished, and has to stay where it is. What
  // goes wrong with this request alone is in the record; nothing is thrown for it.
  virtual void start(const PlannedRequest& request, RequestRecord& record) = 0;

  // Serves the running requests until some of them finished, or until `until`, or until Ctrl-C;
  // returns the ones that finished.
  virtual std::vector<RequestRecord*> wait(BenchClock::time_point until) = 0;

  // Ctrl-C was pressed.
  virtual bool interrupted() const = 0;

  // Breaks off what runs; those records stay unfinished.
  virtual void cancel_all() = 0;
};

}  // namespace tgi::bench
