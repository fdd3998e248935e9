#include "tests/cuda_emulation/early_kernel.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace tgi::cuda_emulation {

// Never destroyed, as a thread that waits for work may outlive everything.
class EarlyKernel::Helper {
 public:
  Helper() {
    std::thread([this] { work(); }).detach();
  }

  void begin(const KernelLaunch* launch) {
    std::unique_lock lock(mutex_);
    launch_ = launch;
    state_ = State::kBeginning;
    changed_.notify_all();
    changed_.wait(lock, [this] { return state_ == State::kWaiting || state_ == State::kDone; });
  }

  void finish() {
    std::unique_lock lock(mutex_);
    if (state_ == State::kWaiting) state_ = State::kFinishing;
    changed_.notify_all();
    changed_.wait(lock, [this] { return state_ == State::kDone; });
  }

 private:
  enum class State { kDone, kBeginning, kWaiting, kFinishing };

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return state_ == State::kBeginning; });
      const KernelLaunch* const launch = launch_;
      lock.unlock();
      BlockRunner::of_this_thread().run(*launch, [this] { wait_for_previous(); });
      lock.lock();
      state_ = State::kDone;
      changed_.notify_all();
    }
  }

  void wait_for_previous() {
    std::unique_lock lock(mutex_);
    state_ = State::kWaiting;
    changed_.notify_all();
    changed_.wait(lock, [this] { return state_ == State::kFinishing; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kDone;            // guarded by mutex_
  const KernelLaunch* launch_ = nullptr;  // guarded by mutex_
};

namespace {

struct Pool {
  std::mutex mutex;
  pid_t process = 0;  // a forked process has none of the threads
  std::vector<void*> idle;
};
Pool& pool() {
  static Pool* const out = new Pool;
  return *out;
}

}  // namespace

EarlyKernel::Helper* EarlyKernel::take_helper() {
  const std::lock_guard lock(pool().mutex);
  if (pool().process != ::getpid()) pool().idle.clear();
  pool().process = ::getpid();
  if (pool().idle.empty()) return new Helper;
  auto* const out = static_cast<Helper*>(pool().idle.back());
  pool().idle.pop_back();
  return out;
}

void EarlyKernel::give_back(Helper* helper) {
  const std::lock_guard lock(pool().mutex);
  pool().idle.push_back(helper);
}

EarlyKernel::EarlyKernel(std::shared_ptr<const KernelLaunch> launch)
    : launch_(std::move(launch)), helper_(take_helper()) {
  helper_->begin(launch_.get());
}

void EarlyKernel::finish() {
  if (helper_ == nullptr) return;
  helper_->finish();
  give_back(helper_);
  helper_ = nullptr;
}

}  // namespace tgi::cuda_emulation
