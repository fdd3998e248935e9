#include "cuda/link_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>

#include "base/log.h"

namespace tgi::cuda {
namespace {

constexpr std::chrono::milliseconds kMaxInterval{200};

// The rank that came least far: the others wait for it.
const WatchedRank& slowest(const std::vector<WatchedRank*>& ranks) {
  const auto progress = [](const WatchedRank* rank) {
    return std::pair(rank->clock().num_begun(), rank->clock().num_ended());
  };
  return **std::min_element(ranks.begin(), ranks.end(), [&](const auto* a, const auto* b) {
    return progress(a) < progress(b);
  });
}

std::string describe(const WatchedRank& last,
                     const WatchedRank& late,
                     std::chrono::milliseconds deadline) {
  return fmt::format(
      "a step did not end within {} s: rank {} has begun {} steps and ended {}, rank {} {} and {}",
      std::chrono::duration<double>(deadline).count(), last.rank(), last.clock().num_begun(),
      last.clock().num_ended(), late.rank(), late.clock().num_begun(), late.clock().num_ended());
}

}  // namespace

LinkWatch::LinkWatch(std::chrono::milliseconds step_deadline) : step_deadline_(step_deadline) {
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

void LinkWatch::add(WatchedRank* rank) {
  const std::lock_guard lock(mutex_);
  ranks_.push_back(rank);
}

void LinkWatch::remove(WatchedRank* rank) {
  const std::lock_guard lock(mutex_);
  std::erase(ranks_, rank);
}

void LinkWatch::watch(const std::stop_token& stop) {
  std::mutex sleep_mutex;
  std::condition_variable_any sleep;
  std::unique_lock lock(sleep_mutex);
  const auto interval = std::min(kMaxInterval, step_deadline_ / 4);
  while (!stop.stop_requested()) {
    sleep.wait_for(lock, stop, interval, [] { return false; });
    look();
  }
}

void LinkWatch::look() {
  const std::lock_guard lock(mutex_);
  if (has_ended_) return;
  const auto now = StepClock::Clock::now();
  std::optional<std::pair<int, std::string>> failure;
  for (WatchedRank* const rank : ranks_) {
    if (const auto error = rank->link_error()) {
      failure = {rank->rank(), *error};
    } else if (rank->clock().waiting(now) > step_deadline_) {
      const WatchedRank& last = slowest(ranks_);
      failure = {last.rank(), describe(last, *rank, step_deadline_)};
    }
    if (failure) break;
  }
  if (!failure) return;
  has_ended_ = true;
  log_error("a rank has failed", {{"rank", failure->first}, {"error", failure->second}});
  for (WatchedRank* const rank : ranks_) rank->abort(failure->first, failure->second);
}

}  // namespace tgi::cuda
