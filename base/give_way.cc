#include "base/give_way.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

namespace tgi {
namespace {

constexpr std::chrono::milliseconds kShort{5};
constexpr int kLongWorkPriority = 10;  // a weight of 110 beside 1024 of nice 0 (sched(7))

void set_priority(pid_t thread, int nice) {
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), nice);
}

}  // namespace

void lower_priority(int nice) {
  set_priority(::gettid(), nice);
}

void run_giving_way(const std::function<void()>& work) {
  std::mutex mutex;
  std::condition_variable changed;
  pid_t id = 0;              // guarded by mutex
  bool has_ended = false;    // guarded by mutex
  std::exception_ptr error;  // read when it has ended
  const auto run = [&] {
    {
      const std::lock_guard lock(mutex);
      id = ::gettid();
      changed.notify_one();
    }
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    has_ended = true;
    changed.notify_one();
  };
  std::jthread thread;
  try {
    thread = std::jthread(run);
  } catch (const std::system_error&) {
    work();
    return;
  }
  {
    // While the lock is held the thread can't end, nor its id become another's.
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return id != 0; });
    const bool was_short = changed.wait_for(lock, kShort, [&] { return has_ended; });
    if (!was_short) set_priority(id, kLongWorkPriority);
  }
  thread.join();
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace tgi
