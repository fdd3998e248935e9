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

template <typename Count, typename Run>
void CpuDevice::run_attention_tasks(Count count, Run run) {
  const auto num_sequences = static_cast<size_t>(batch_->num_sequences());
  first_task_[0] = 0;
  for (size_t i = 0; i < num_sequences; ++i) first_task_[i + 1] = first_task_[i] + count(i);
  pool_.parallel_for(first_task_[num_sequences], [&](int64_t task, int thread) {
    const auto after = std::upper_bound(
        first_task_.begin(), first_task_.begin() + static_cast<int64_t>(num_sequences), task);
    const auto sequence = static_cast<size_t>(after - first_task_.begin()) - 1;
    run(sequence, task - first_task_[sequence], thread);
  });
}

}  // namespace tgi
