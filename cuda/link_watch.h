// The thread that looks after the ranks of a group: a rank whose link has an error or whose step
// does not end ends the steps of all, by name. Nobody else could: who waits for that rank, waits.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cuda/step_clock.h"

namespace tgi::cuda {

// A rank as it is watched. Called on the watch's thread.
class WatchedRank {
 public:
  virtual ~WatchedRank() = default;
  virtual int rank() const = 0;
  virtual const StepClock& clock() const = 0;
  // What is wrong with its link. (nothing: it works)
  virtual std::optional<std::string> link_error() = 0;
  virtual void abort(int failed_rank, const std::string& reason) = 0;
};

class LinkWatch {
 public:
  explicit LinkWatch(std::chrono::milliseconds step_deadline);

  // From any thread; a rank is watched until it is removed.
  void add(WatchedRank* rank);
  void remove(WatchedRank* rank);

 private:
  void watch(const std::stop_token& stop);
  void look();

  const std::chrono::milliseconds step_deadline_;
  std::mutex mutex_;
  std::vector<WatchedRank*> ranks_;  // guarded by mutex_
  bool has_ended_ = false;           // guarded by mutex_: the ranks were told of a failure
  std::jthread thread_;              // last: starts when everything else is there
};

}  // namespace tgi::cuda
