// How the ops of CpuDevice share rows among its threads: for its sources alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/cpu/cpu_device.h"

namespace tgi {

// Below this many element operations the calling thread is done before another would have begun.
inline constexpr int64_t kMinSharedWork = 16384;

template <typename Fn>
void CpuDevice::for_rows(int64_t num_rows, int64_t work_per_row, Fn fn) {
  const int64_t num_tasks = std::min(num_rows, int64_t{4} * pool_.num_threads());
  if (pool_.num_threads() == 1 || num_rows * work_per_row < kMinSharedWork) {
    for (int64_t row = 0; row < num_rows; ++row) fn(row);
    return;
  }
  pool_.parallel_for(num_tasks, [&](int64_t task, int /*thread*/) {
    const int64_t end = (task + 1) * num_rows / num_tasks;
    for (int64_t row = task * num_rows / num_tasks; row < end; ++row) fn(row);
  });
}

}  // namespace tgi
