// Looking for what another thread is about to do, for a moment, before sleeping: a sleep and its
// wake-up take longer than most of these waits, and a thread that never sleeps costs a processor.
#pragma once

#include <chrono>

namespace tgi {

// Longer than the gaps between the ops of one step, shorter than anyone would notice.
inline constexpr auto kSpinTime = std::chrono::microseconds(100);

inline void relax_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until done() or the time is up; says which.
template <typename Done>
bool spin_until(Done done, std::chrono::microseconds time = kSpinTime) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      relax_cpu();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

}  // namespace tgi
