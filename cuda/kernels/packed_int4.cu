// See packed_kernels.cuh.
#include "cuda/kernels/packed_kernels.cuh"

namespace tgi::cuda {

PackedKernels packed_int4_kernels() {
  return kernels_of<PackedCodes::kInt4>();
}

}  // namespace tgi::cuda
