// How tests steer the emulated GPUs. Environment variables do the same for a process that is not
// linked to the test: TGI_EMULATED_GPUS (number), TGI_EMULATED_GPU_MEMORY (bytes of each),
// TGI_EMULATED_GPU_ORDER (forward, backward, shuffled), TGI_EMULATED_GPU_SEED,
// TGI_EMULATED_GPU_DEFERRED (0 or 1). TGI_EMULATED_GPU_HANG names a file: while there is one,
// kernels don't end.
//
// Everything here may be called from any thread; set_* before the work that it shall change.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace tgi::cuda_emulation {

// The order of blocks, of the warps of a block, and of the lanes of a warp between two meeting
// points. A correct kernel gives the same result in each. Default: kShuffled.
enum class Order { kForward, kBackward, kShuffled };
void set_order(Order order, uint64_t seed = 1);

// On (the default): what goes to a stream runs when somebody synchronises with it or asks how far
// it is. Off: at once.
void set_deferred(bool on);

// Also gives every device its memory back and forgets leaks; call it between tests, when nothing of
// CUDA is alive. total_memory_bytes is that of each device.
void set_devices(int num_devices,
                 size_t total_memory_bytes = size_t{1} << 30,
                 int num_multiprocessors = 4);

// The compute capability of all devices; 9.0 unless told.
void set_compute_capability(int major, int minor);

// No kernel is loaded any more: what is launched first is to be outside of a capture.
void forget_kernels();

// After `after` more allocations of device memory, `count` fail with cudaErrorMemoryAllocation.
void fail_allocations(int count = 1, int after = 0);

// After `after` more calls of the runtime every call returns `error`, until restore_devices.
void lose_devices(cudaError_t error = cudaErrorLaunchFailure, int64_t after = 0);
void restore_devices();

// Bytes of device memory that are allocated on all devices, and of pinned host memory.
size_t allocated_bytes();
size_t pinned_bytes();

// What was emulated since the process began.
struct Counters {
  uint64_t launches = 0;
  uint64_t blocks = 0;
  uint64_t threads = 0;
  uint64_t switches = 0;         // from one emulated thread to another
  uint64_t pageable_copies = 0;  // cudaMemcpyAsync from or to memory that is not pinned
};
Counters counters();

}  // namespace tgi::cuda_emulation
