// See packed_kernels.cuh.
#include "cuda/kernels/packed_kernels.cuh"

namespace tgi::cuda {

PackedKernels packed_table4_kernels() {
  return kernels_of<PackedCodes::kTable4>();
}

}  // namespace tgi::cuda
