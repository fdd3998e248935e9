// Work that goes on when the client that asked for it has its answer: a thread for each, as many as
// requests may generate at once. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"

namespace tgi::http {

class BackgroundRuns {
 public:
  // What is watched in the place of a client's connection (Request::peer_fd), and what has to stay
  // open for that: when it is closed, the run is to end.
  struct Line {
    UniqueFd watched;
    UniqueFd held;
  };
  static Line open_line();  // throws Error(kInternal)

  BackgroundRuns() = default;
  ~BackgroundRuns();  // ends all that run
  BackgroundRuns(const BackgroundRuns&) = delete;
  BackgroundRuns& operator=(const BackgroundRuns&) = delete;

  // `work` ends soon after the line was let go, and must not throw.
  void start(const std::string& id, Line line, std::function<void()> work);

  // Ends the run of that name; returns when it has ended. False: none runs.
  bool cancel(const std::string& id);

 private:
  struct Run {
    UniqueFd watched;
    UniqueFd held;
    std::jthread thread;
  };

  void join_ended();

  std::mutex mutex_;
  std::unordered_map<std::string, Run> runs_;  // guarded by mutex_
  std::vector<Run> ended_;                     // guarded by mutex_: their threads are at their end
};

}  // namespace tgi::http
