// Pinned host memory that copies to the GPU are made from: a copy from ordinary memory may wait for
// the stream. Belongs to one thread.
#pragma once

#include <cstddef>

#include "cuda/device_memory.h"

namespace tgi::cuda {

class PinnedStaging {
 public:
  PinnedStaging() = default;
  explicit PinnedStaging(size_t size_bytes);

  // What was staged has been copied: its room may be used again.
  void clear() { used_ = 0; }

  // Enqueues a copy of `size_bytes` bytes, which may be changed at once. Waits for the stream when
  // more was staged since clear() than there is room. Throws kDeviceLost.
  void copy(cudaStream_t stream, void* to_device, const void* from, size_t size_bytes);

 private:
  Buffer memory_;
  size_t used_ = 0;
};

}  // namespace tgi::cuda
