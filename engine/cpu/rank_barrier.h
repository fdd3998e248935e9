// Where the ranks of one process wait for each other, for as long as all of them are alive.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tgi {

// Safe from any thread. Waiting takes no processor time but for the first moment.
class RankBarrier {
 public:
  RankBarrier(int num_ranks, std::chrono::milliseconds timeout);

  // Returns when all ranks have come: what each wrote before is seen by all after. Throws
  // kDeviceLost, now and from then on, when one does not come in time, naming it, or was aborted.
  void arrive_and_wait(int rank);

  // Only the first failure is kept.
  void abort(int failed_rank, const std::string& reason);

 private:
  void wait_for_others(uint32_t round);
  void fail(const std::string& message);  // REQUIRES: mutex_ is held
  std::string missing_ranks(uint32_t round) const;
  [[noreturn]] void throw_failure();

  const int num_ranks_;
  const std::chrono::milliseconds timeout_;
  const std::chrono::microseconds spin_time_;

  alignas(64) std::atomic<uint32_t> round_{0};     // that is being waited for
  alignas(64) std::atomic<int> num_arrived_{0};    // in this round
  std::vector<std::atomic<uint32_t>> num_rounds_;  // each rank has come to
  std::atomic<int> num_asleep_{0};
  std::atomic<bool> failed_{false};

  std::mutex mutex_;
  std::condition_variable wake_;
  std::string failure_;  // guarded by mutex_
};

}  // namespace tgi
