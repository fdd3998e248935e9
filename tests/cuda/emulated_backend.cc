#include "tests/cuda/emulated_backend.h"

extern "C" tgi::Backend* tgi_backend();  // cuda/plugin.cc

namespace tgi::cuda {

Backend& emulated_backend() {
  return *tgi_backend();
}

}  // namespace tgi::cuda
