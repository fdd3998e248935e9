// See packed_kernels.cuh.
#include "cuda/kernels/packed_kernels.cuh"

namespace tgi::cuda {

PackedKernels packed_f8_kernels() {
  return kernels_of<PackedCodes::kF8E4M3>();
}

}  // namespace tgi::cuda
