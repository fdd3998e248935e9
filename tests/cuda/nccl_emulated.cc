// cuda/nccl_communicator.h without NCCL.
#include "base/error.h"
#include "cuda/nccl_communicator.h"

namespace tgi::cuda {

std::vector<std::unique_ptr<Communicator>> make_nccl_communicators(
    std::span<CudaDevice* const> /*ranks*/, std::chrono::seconds /*deadline*/) {
  throw Error(Code::kUnsupported, "there is no link between emulated GPUs");
}

}  // namespace tgi::cuda
