#include "cuda/launch.h"

#include <fmt/format.h>

namespace tgi::cuda {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // an error that is not sticky must not be seen by the next call
  const Code code = status == cudaErrorMemoryAllocation ? Code::kOutOfMemory : Code::kDeviceLost;
  throw Error(code, fmt::format("GPU: {}: {} ({})", what, cudaGetErrorString(status),
                                cudaGetErrorName(status)));
}

}  // namespace tgi::cuda
