#include <cstdlib>

#include "engine/runtime/backend_loader.h"
#include "tests/cuda/emulated_backend.h"

namespace tgi::cuda {

Backend& tested_backend() {
  const bool is_real = std::getenv("TGI_CONFORMANCE_OF_GPU") != nullptr;
  return is_real ? find_backend("cuda") : emulated_backend();
}

}  // namespace tgi::cuda
