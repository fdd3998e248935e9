// Errors of the CUDA runtime as typed errors, and the one way to launch a kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "base/error.h"

namespace tgi::cuda {

// Throws kDeviceLost, naming the call; kOutOfMemory for cudaErrorMemoryAllocation.
void check(cudaError_t status, const char* what);

struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;  // dynamic
  // The kernel calls wait_for_previous_kernel before it touches what the kernel before it wrote, so
  // that its start overlaps with that one's end (sm_90 and later; else it means nothing).
  bool overlaps_previous = false;
};

// More than 48 KiB of dynamic shared memory has to be allowed once for each kernel: allow_shared.
template <typename... Parameters, typename... Arguments>
void launch(cudaStream_t stream,
            const LaunchShape& shape,
            void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute attribute{};
  if (shape.overlaps_previous) {
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  check(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), "launching a kernel");
}

template <typename... Parameters>
void allow_shared(void (*kernel)(Parameters...), size_t size_bytes) {
  check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(size_bytes)),
        "allowing a kernel its shared memory");
}

}  // namespace tgi::cuda
