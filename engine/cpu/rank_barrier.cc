#include "engine/cpu/rank_barrier.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/spin.h"
#include "engine/cpu/host_resources.h"

namespace tgi {
namespace {

// The time is counted in slices of the waiter's own: when the whole process was stopped (a
// debugger, a frozen container) that costs one of them, and no rank is lost by it.
constexpr int kNumSlices = 16;

// A rank that spins where another could run only delays what it waits for.
std::chrono::microseconds spin_time(int num_ranks) {
  return static_cast<size_t>(num_ranks) > affinity_cpus().size() ? std::chrono::microseconds(0)
                                                                 : kSpinTime;
}

}  // namespace

RankBarrier::RankBarrier(int num_ranks, std::chrono::milliseconds timeout)
    : num_ranks_(num_ranks),
      timeout_(timeout),
      spin_time_(spin_time(num_ranks)),
      num_rounds_(static_cast<size_t>(num_ranks)) {}

void RankBarrier::arrive_and_wait(int rank) {
  const uint32_t round = round_.load(std::memory_order_acquire);  // stays until this rank arrives
  if (failed_.load(std::memory_order_acquire)) throw_failure();
  num_rounds_[static_cast<size_t>(rank)].store(round + 1, std::memory_order_relaxed);
  if (num_arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < num_ranks_) {
    return wait_for_others(round);
  }
  num_arrived_.store(0, std::memory_order_relaxed);
  // Sequentially consistent, as is the count of sleepers: either a rank that is about to sleep
  // sees the new round, or this sees the rank.
  round_.store(round + 1);
  if (num_asleep_.load() > 0) {
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
}

void RankBarrier::wait_for_others(uint32_t round) {
  const auto ended = [&] { return round_.load() != round || failed_.load(); };
  if (!spin_until(ended, spin_time_)) {
    const auto slice = std::chrono::microseconds(timeout_) / kNumSlices;
    std::unique_lock lock(mutex_);
    num_asleep_.fetch_add(1);
    bool has_ended = false;
    for (int i = 0; i < kNumSlices && !has_ended; ++i) {
      has_ended = wake_.wait_for(lock, slice, ended);
    }
    num_asleep_.fetch_sub(1);
    if (!has_ended) {
      fail(fmt::format("{} of {} did not come to a reduction within {:.1f} s", missing_ranks(round),
                       num_ranks_, std::chrono::duration<double>(timeout_).count()));
    }
  }
  if (round_.load() == round) throw_failure();
}

void RankBarrier::abort(int failed_rank, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  fail(fmt::format("rank {} of {} failed: {}", failed_rank, num_ranks_, reason));
}

void RankBarrier::fail(const std::string& message) {
  if (failed_.load()) return;
  failure_ = message;
  failed_.store(true);
  wake_.notify_all();
}

// "rank 1", "ranks 1, 3"
std::string RankBarrier::missing_ranks(uint32_t round) const {
  std::string names;
  int count = 0;
  for (size_t rank = 0; rank < num_rounds_.size(); ++rank) {
    if (num_rounds_[rank].load(std::memory_order_relaxed) == round + 1) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", rank);
    ++count;
  }
  return fmt::format("{} {}", count == 1 ? "rank" : "ranks", names);
}

void RankBarrier::throw_failure() {
  const std::lock_guard lock(mutex_);
  throw Error(Code::kDeviceLost, failure_);
}

}  // namespace tgi
