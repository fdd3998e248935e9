// A kernel that was launched to overlap with the kernel before it, begun before that one has run:
// as early as any GPU could. Its blocks run until one of them waits for the kernel before; what it
// reads up to there are old values. It goes on when finish() is called.
//
// It runs on a host thread of its own, as its shared memory must not be that of another kernel;
// only one of the two threads runs at a time.
#pragma once

#include <memory>

#include "tests/cuda_emulation/block_runner.h"

namespace tgi::cuda_emulation {

class EarlyKernel {
 public:
  // Returns when a block waits, or all have ended.
  explicit EarlyKernel(std::shared_ptr<const KernelLaunch> launch);
  ~EarlyKernel() { finish(); }
  EarlyKernel(const EarlyKernel&) = delete;
  EarlyKernel& operator=(const EarlyKernel&) = delete;

  // The kernel before has ended.
  void finish();

 private:
  class Helper;
  static Helper* take_helper();
  static void give_back(Helper* helper);

  std::shared_ptr<const KernelLaunch> launch_;
  Helper* helper_;  // null: finished
};

}  // namespace tgi::cuda_emulation
