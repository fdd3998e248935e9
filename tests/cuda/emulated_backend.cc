#include "tests/cuda/emulated_backend.h"

#include <cstdlib>

#include "engine/runtime/backend_loader.h"

extern "C" tgi::Backend* tgi_backend();  // cuda/plugin.cc

namespace tgi::cuda {

Backend& emulated_backend() {
  return *tgi_backend();
}

Backend& tested_backend() {
  const bool is_real = std::getenv("TGI_CONFORMANCE_OF_GPU") != nullptr;
  return is_real ? find_backend("cuda") : emulated_backend();
}

}  // namespace tgi::cuda
