#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tgi {

void parallel_for(int num_threads, int64_t num_tasks, const std::function<void(int64_t)>& task) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;  // guarded by mutex
  const auto work = [&] {
    for (int64_t index = next++; index < num_tasks; index = next++) {
      try {
        task(index);
      } catch (...) {
        next = num_tasks;
        const std::lock_guard lock(mutex);
        if (error == nullptr) error = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    const int64_t count = std::min<int64_t>(num_threads, num_tasks);
    for (int64_t i = 1; i < count; ++i) threads.emplace_back(work);
    work();
  }
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace tgi
