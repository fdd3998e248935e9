// Whether the engine gets on, as far as a service manager should know: a daemon whose I/O answers
// while its device hangs is no living daemon. Belongs to one thread.
#pragma once

#include <chrono>

#include "engine/runtime/engine.h"

namespace tgi {

class ProgressWatch {
 public:
  // Zero: it always gets on.
  explicit ProgressWatch(std::chrono::milliseconds stall_timeout) : timeout_(stall_timeout) {}

  // False when there has been work for longer than the timeout and no step has ended since. Without
  // work nothing has to end.
  bool gets_on(const EngineProgress& progress, std::chrono::steady_clock::time_point now) {
    if (!progress.has_work || progress.num_steps != num_steps_ || !waits_) since_ = now;
    waits_ = progress.has_work;
    num_steps_ = progress.num_steps;
    return timeout_.count() == 0 || now - since_ <= timeout_;
  }

 private:
  std::chrono::milliseconds timeout_;
  bool waits_ = false;
  int64_t num_steps_ = 0;
  std::chrono::steady_clock::time_point since_{};  // the last step, or the begin of the work
};

}  // namespace tgi
