// See thread_pool.h. A loop is one store to state_; taking a task is one compare-and-swap on it.
#include "engine/cpu/thread_pool.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/spin.h"
#include "engine/cpu/flush_denormals.h"
#include "engine/cpu/host_resources.h"

namespace tgi {
namespace {

constexpr uint64_t kCountMask = 0xFFFFFFFFU;

}  // namespace

int default_num_threads() {
  int count = static_cast<int>(one_cpu_per_core(affinity_cpus()).size());
  const double quota = cgroup_cpu_quota("/");
  if (quota > 0) count = std::min(count, std::max(1, static_cast<int>(quota + 0.5)));
  return std::max(count, 1);
}

ThreadPool::ThreadPool(int num_threads, bool pinned, int first_cpu) {
  const int count = num_threads > 0 ? num_threads : default_num_threads();
  if (pinned) {
    cpus_ = spread_over_cores(affinity_cpus());
    std::rotate(cpus_.begin(), cpus_.begin() + first_cpu % static_cast<int>(cpus_.size()),
                cpus_.end());
  }
  workers_.reserve(static_cast<size_t>(count - 1));
  for (int thread = 1; thread < count; ++thread) {
    workers_.emplace_back([this, thread] { work(thread); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_.store(true);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::pin_caller() {
  if (cpus_.empty() || caller_is_pinned_) return;
  (void)pin_this_thread(cpus_[0]);
  caller_is_pinned_ = true;
}

void ThreadPool::run(int64_t num_tasks, Function function, void* context) {
  if (num_tasks <= 0) return;
  TGI_CHECK(num_tasks <= INT32_MAX);
  const auto count = static_cast<uint32_t>(num_tasks);
  function_.store(function, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  num_tasks_.store(count, std::memory_order_relaxed);
  num_done_.store(0, std::memory_order_relaxed);
  const uint64_t loop = (state_.load(std::memory_order_relaxed) >> 32) + 1;
  // Sequentially consistent, as is the count of sleepers: either a worker that is about to sleep
  // sees the loop, or this sees the worker.
  state_.store(loop << 32 | count);
  if (count > 1 && num_asleep_.load() > 0) {
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  while (run_one(0)) {
  }
  const auto all_done = [&] { return num_done_.load(std::memory_order_acquire) == count; };
  if (!spin_until(all_done)) {
    for (uint32_t done = num_done_.load(std::memory_order_acquire); done != count;
         done = num_done_.load(std::memory_order_acquire)) {
      num_done_.wait(done, std::memory_order_acquire);
    }
  }
  const std::lock_guard lock(mutex_);
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
}

bool ThreadPool::run_one(int thread) {
  uint64_t state = state_.load(std::memory_order_acquire);
  while ((state & kCountMask) != 0) {
    const Function function = function_.load(std::memory_order_relaxed);
    void* const context = context_.load(std::memory_order_relaxed);
    const uint32_t num_tasks = num_tasks_.load(std::memory_order_relaxed);
    if (state_.compare_exchange_weak(state, state - 1, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
      execute(function, context, num_tasks - (state & kCountMask), thread);
      if (num_done_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_tasks) {
        num_done_.notify_one();
      }
      return true;
    }
  }
  return false;
}

void ThreadPool::execute(Function function, void* context, int64_t index, int thread) {
  try {
    function(context, index, thread);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (error_ == nullptr) error_ = std::current_exception();
  }
}

void ThreadPool::work(int thread) {
  const FlushDenormals flush;
  if (static_cast<size_t>(thread) < cpus_.size()) {
    (void)pin_this_thread(cpus_[static_cast<size_t>(thread)]);
  }
  while (!stop_.load(std::memory_order_relaxed)) {
    if (run_one(thread)) continue;
    const uint64_t seen = state_.load(std::memory_order_acquire);
    if ((seen & kCountMask) == 0) wait_for_work(seen);
  }
}

void ThreadPool::wait_for_work(uint64_t seen) {
  const auto changed = [&] {
    return state_.load(std::memory_order_relaxed) != seen || stop_.load(std::memory_order_relaxed);
  };
  if (spin_until(changed)) return;
  std::unique_lock lock(mutex_);
  num_asleep_.fetch_add(1);
  wake_.wait(lock, [&] { return state_.load() != seen || stop_.load(); });
  num_asleep_.fetch_sub(1);
}

}  // namespace tgi
