// See packed_kernels.cuh.
#include "cuda/kernels/packed_kernels.cuh"

namespace tgi::cuda {

PackedKernels packed_int8_kernels() {
  return kernels_of<PackedCodes::kInt8>();
}

}  // namespace tgi::cuda
