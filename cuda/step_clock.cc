#include "cuda/step_clock.h"

namespace tgi::cuda {

void StepClock::begin() {
  if (num_begun_.load() == num_ended_.load()) since_ = Clock::now().time_since_epoch().count();
  ++num_begun_;
}

void StepClock::end() {
  since_ = Clock::now().time_since_epoch().count();
  ++num_ended_;
}

StepClock::Clock::duration StepClock::waiting(Clock::time_point now) const {
  // The ended first: a step that begins and ends in between makes one look idle, not stuck.
  const int64_t num_ended = num_ended_.load();
  if (num_begun_.load() == num_ended) return {};
  return now.time_since_epoch() - Clock::duration(since_.load());
}

}  // namespace tgi::cuda
