#include "cuda/pinned_staging.h"

#include <algorithm>
#include <cstring>

#include "cuda/launch.h"

namespace tgi::cuda {

PinnedStaging::PinnedStaging(size_t size_bytes)
    : memory_(allocate_pinned(size_bytes, "lists that a step tells the GPU")) {}

void PinnedStaging::copy(cudaStream_t stream,
                         void* to_device,
                         const void* from,
                         size_t size_bytes) {
  TGI_CHECK(memory_);
  auto* to = static_cast<std::byte*>(to_device);
  const auto* source = static_cast<const std::byte*>(from);
  while (size_bytes > 0) {
    if (used_ == memory_.size_bytes()) {
      check(cudaStreamSynchronize(stream), "waiting for lists to be copied");
      used_ = 0;
    }
    const size_t count = std::min(size_bytes, memory_.size_bytes() - used_);
    std::byte* const staged = static_cast<std::byte*>(memory_.data()) + used_;
    std::memcpy(staged, source, count);
    check(cudaMemcpyAsync(to, staged, count, cudaMemcpyHostToDevice, stream), "copying lists");
    used_ += count;
    to += count;
    source += count;
    size_bytes -= count;
  }
}

}  // namespace tgi::cuda
