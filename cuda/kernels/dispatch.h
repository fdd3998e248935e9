// From a DType to a template argument, once a launch.
#pragma once

#include <string>

#include "base/error.h"
#include "cuda/kernels/types.cuh"
#include "engine/tensor/tensor.h"

namespace tgi::cuda {

// Calls use(bf16{}) or use(f16{}).
template <typename Use>
void with_element(DType dtype, Use use) {
  switch (dtype) {
    case DType::kBF16:
      return use(bf16{});
    case DType::kF16:
      return use(f16{});
    default:
      throw Error(Code::kInternal, "the cuda backend computes in bf16 or f16, got " +
                                       std::string(dtype_name(dtype)));
  }
}

}  // namespace tgi::cuda
