// How a device gets on with its steps, for whoever watches it from another thread. Safe from any
// thread; begin and end belong to the device's.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tgi::cuda {

class StepClock {
 public:
  using Clock = std::chrono::steady_clock;

  void begin();
  void end();

  int64_t num_begun() const { return num_begun_.load(); }
  int64_t num_ended() const { return num_ended_.load(); }

  // Since when the oldest step that has not ended waits for its end: since it began, or since the
  // one before it ended. Zero when there is none.
  Clock::duration waiting(Clock::time_point now) const;

 private:
  std::atomic<int64_t> num_begun_{0};
  std::atomic<int64_t> num_ended_{0};
  std::atomic<Clock::rep> since_{0};
};

}  // namespace tgi::cuda
