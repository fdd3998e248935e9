// A few threads that do what must not hold up the I/O thread: tokenising, rendering, loading
// models. All methods may be called from any thread. The destructor finishes what was posted and
// not dropped.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tgi::daemon {

class Jobs {
 public:
  explicit Jobs(int32_t num_threads);
  ~Jobs();

  // Exactly one of the two is called: `job` by one of the threads, or `dropped` (optional) when it
  // is never to begin. Neither may throw.
  void post(std::function<void()> job, std::function<void()> dropped = nullptr);

  // Nothing begins any more: what waits is dropped now, what is posted later at once. What runs
  // goes on.
  void drop_waiting();

 private:
  struct Job {
    std::function<void()> run;
    std::function<void()> dropped;
  };

  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any posted_;
  std::deque<Job> queue_;     // guarded by mutex_
  bool is_dropping_ = false;  // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace tgi::daemon
