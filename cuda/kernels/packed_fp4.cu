// See packed_kernels.cuh.
#include "cuda/kernels/packed_kernels.cuh"

namespace tgi::cuda {

PackedKernels packed_fp4_kernels() {
  return kernels_of<PackedCodes::kFp4>();
}

}  // namespace tgi::cuda
