// Ranks of one process, a GPU each, through NCCL: all-reduces are enqueued on the rank's stream
// like its kernels.
//
// Source: NCCL 2.27 API. The library's calls return before they have done their work, which must be
// asked for before the next call, with a deadline. Errors of the network arise even later: a thread
// of the group looks for them, and for a rank whose steps do not end, and ends the steps of all.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "cuda/cuda_device.h"
#include "engine/device/communicator.h"

namespace tgi::cuda {

struct LinkDeadlines {
  std::chrono::milliseconds join{60000};
  std::chrono::milliseconds launch{60000};  // of one call of the library
  // of a step on the GPU, from its begin or from the end of the one before it
  std::chrono::milliseconds step{120000};
};

// Joins all ranks and proves it with one all-reduce whose sum is known. Throws kDeviceLost naming
// the rank that could not join or summed wrong, kUnsupported when the library can't be loaded.
std::vector<std::unique_ptr<Communicator>> make_nccl_communicators(
    std::span<CudaDevice* const> ranks, const LinkDeadlines& deadlines = {});

}  // namespace tgi::cuda
