#include "engine/runtime/backend_loader.h"
#include "tests/cuda/emulated_backend.h"
#include "tests/real_gpu.h"

namespace tgi::cuda {

Backend& tested_backend() {
  return is_for_real_gpu() ? find_backend("cuda") : emulated_backend();
}

}  // namespace tgi::cuda
