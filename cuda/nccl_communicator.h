// Ranks of one process, a GPU each, through NCCL: all-reduces are enqueued on the rank's stream
// like its kernels.
//
// Source: NCCL 2.27 API. Errors of the network arise later than the call: they are asked for at
// each all-reduce.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "cuda/cuda_device.h"
#include "engine/device/communicator.h"

namespace tgi::cuda {

// Joins all ranks and proves it with one all-reduce whose sum is known. Throws kDeviceLost naming
// the rank that could not join or summed wrong, kUnsupported when the library can't be loaded.
std::vector<std::unique_ptr<Communicator>> make_nccl_communicators(
    std::span<CudaDevice* const> ranks, std::chrono::seconds deadline);

}  // namespace tgi::cuda
