// One thread for each rank of a model, from making its device to dropping it.
//
// Rank 0's is whoever calls run, for the sake of the model that has one rank: it then runs on the
// engine's thread, without a hand-over in every step and without a case of its own anywhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace tgi {

// One thread at a time may call run, and not from within a task. Between runs the threads spin for
// a moment, then sleep. A task that never returns is waited for: that a device which hangs gives up
// in the end is its backend's care.
class RankThreads {
 public:
  explicit RankThreads(int num_ranks);
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  int num_ranks() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls task(rank) on the thread of each rank and returns when all have ended. What a task throws
  // first is thrown here, naming its rank where there are several. Allocates nothing.
  template <typename Task>
  void run(Task&& task) {
    using Plain = std::remove_reference_t<Task>;
    run_all([](void* context, int rank) { (*static_cast<Plain*>(context))(rank); },
            const_cast<std::remove_const_t<Plain>*>(&task));
  }

  // Whether a task of this run has thrown: the others may as well give up.
  bool has_failed() const { return failed_.load(); }

  // Called on the thread of the rank that was the first to throw in a run, before the others have
  // ended: ends what they wait for. REQUIRES: none runs.
  void set_on_failure(std::function<void(int rank, const std::string& reason)> on_failure) {
    on_failure_ = std::move(on_failure);
  }

 private:
  using Function = void (*)(void* context, int rank);

  void run_all(Function function, void* context);
  void run_one(int rank);
  void work(int rank);
  void take_failure(int rank, const std::exception_ptr& error);

  Function function_ = nullptr;  // of this run; written before round_
  void* context_ = nullptr;
  std::function<void(int rank, const std::string& reason)> on_failure_;

  alignas(64) std::atomic<uint32_t> round_{0};      // of runs
  alignas(64) std::atomic<uint32_t> num_ended_{0};  // ranks other than 0 in this run
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};

  std::mutex mutex_;
  std::exception_ptr error_;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace tgi
