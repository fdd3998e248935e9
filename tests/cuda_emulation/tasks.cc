// What streams and graphs do, in order: kernels, which may overlap, and the rest.
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "tests/cuda_emulation/block_runner.h"
#include "tests/cuda_emulation/runtime_state.h"

namespace tgi::cuda_emulation {
namespace {

// For an hour when a test says so: a kernel that never ends.
void hang_when_told() {
  static const char* const file = std::getenv("TGI_EMULATED_GPU_HANG");
  while (file != nullptr && ::access(file, F_OK) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace

std::shared_ptr<EarlyKernel> begin_early(const Task& task, const Task* following) {
  const bool overlaps = task.kernel != nullptr && following != nullptr &&
                        following->kernel != nullptr && following->kernel->overlaps_previous;
  return overlaps ? std::make_shared<EarlyKernel>(following->kernel) : nullptr;
}

void run_task(const Task& task, const std::shared_ptr<EarlyKernel>& begun) {
  if (task.kernel != nullptr) hang_when_told();
  if (begun != nullptr) {
    begun->finish();
  } else if (task.kernel != nullptr) {
    BlockRunner::of_this_thread().run(*task.kernel);
  } else if (task.run) {
    task.run();
  }
}

void run_tasks(const std::vector<Task>& tasks) {
  std::shared_ptr<EarlyKernel> begun;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Task* const following = i + 1 < tasks.size() ? &tasks[i + 1] : nullptr;
    std::shared_ptr<EarlyKernel> next = begin_early(tasks[i], following);
    run_task(tasks[i], begun);
    begun = std::move(next);
  }
}

}  // namespace tgi::cuda_emulation
