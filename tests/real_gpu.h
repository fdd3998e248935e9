// Whether tests are to run on a real GPU and on nothing else: scripts/gpu_check sets
// TGI_CONFORMANCE_OF_GPU.
#pragma once

#include <cstdlib>

namespace tgi {

inline bool is_for_real_gpu() {
  return std::getenv("TGI_CONFORMANCE_OF_GPU") != nullptr;
}

}  // namespace tgi
