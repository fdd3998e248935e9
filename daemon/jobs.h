// A few threads that do what must not hold up the I/O thread: tokenising, rendering, loading
// models. post may be called from any thread. The destructor finishes what was posted.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tgi {

class Jobs {
 public:
  explicit Jobs(int32_t num_threads);
  ~Jobs();

  void post(std::function<void()> job);  // a job must not throw

 private:
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any posted_;
  std::deque<std::function<void()>> queue_;  // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace tgi
