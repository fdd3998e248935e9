// Threads that share the tasks of one loop. The calling thread takes part, so a pool of one starts
// no thread. Between loops the others spin for a moment, then sleep: an idle pool costs nothing.
//
// One thread at a time may call parallel_for, and not from within a task.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace tgi {

class ThreadPool {
 public:
  // 0: default_num_threads(). Pinned: each thread stays on one processor, the calling one from
  // pin_caller() on; best effort. Pools beside each other skip the processors of those before:
  // first_cpu.
  explicit ThreadPool(int num_threads = 0, bool pinned = false, int first_cpu = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Pins the thread that will call parallel_for, if the pool is pinned and it isn't yet.
  void pin_caller();

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls task(index, thread) for each index in [0, num_tasks), thread in [0, num_threads()), and
  // returns when all are done. Indices are taken in rising order by whoever is free. What a task
  // throws first is rethrown here after the others ended. Allocates nothing.
  template <typename Task>
  void parallel_for(int64_t num_tasks, Task&& task) {
    using Plain = std::remove_reference_t<Task>;
    run(
        num_tasks,
        [](void* context, int64_t index, int thread) {
          (*static_cast<Plain*>(context))(index, thread);
        },
        const_cast<std::remove_const_t<Plain>*>(&task));
  }

 private:
  using Function = void (*)(void* context, int64_t index, int thread);

  void run(int64_t num_tasks, Function function, void* context);
  void work(int thread);
  bool run_one(int thread);
  void execute(Function function, void* context, int64_t index, int thread);
  void wait_for_work(uint64_t seen);

  // Upper half: number of the loop; lower half: tasks not yet taken. One word, so that a task can
  // only be taken from the loop whose fields were read: while any is left, the loop has not ended
  // and the fields stand.
  alignas(64) std::atomic<uint64_t> state_{0};
  std::atomic<Function> function_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<uint32_t> num_tasks_{0};
  alignas(64) std::atomic<uint32_t> num_done_{0};
  alignas(64) std::atomic<int> num_asleep_{0};
  std::atomic<bool> stop_{false};

  std::mutex mutex_;
  std::condition_variable wake_;
  std::exception_ptr error_;  // guarded by mutex_
  std::vector<int> cpus_;     // of thread 0, 1, ...; empty: not pinned
  bool caller_is_pinned_ = false;
  std::vector<std::thread> workers_;
};

// The physical cores this process may use: of its affinity mask, bounded by the quota of its
// cgroup.
int default_num_threads();

}  // namespace tgi
