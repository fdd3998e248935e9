// Work that goes on when the client that asked for it has its answer: a thread for each, as many as
// requests may generate at once. Thread-safe.
#pragma once

#include <condition_variable>
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

  // `work` ends soon after the line was let go. What it throws is logged. Throws, and runs nothing,
  // when no thread can be made.
  void start(const std::string& id, Line line, std::function<void()> work);

  // Ends the run of that name; returns when it has ended, however many ask. False: none runs.
  bool cancel(const std::string& id);

 private:
  struct Run {
    UniqueFd watched;
    UniqueFd held;
    std::jthread thread;
  };

  void run(const std::string& id, const std::function<void()>& work);

  std::mutex mutex_;
  std::condition_variable one_ended_;
  std::unordered_map<std::string, Run> runs_;  // guarded by mutex_
  // Guarded by mutex_. Threads at their end, which the next one joins at its own: one is left.
  std::vector<std::jthread> ended_;
};

}  // namespace tgi::http
