// How kernels that work on the elements of rows are launched.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/kernels/dispatch.h"
#include "cuda/launch.h"
#include "engine/tensor/tensor.h"

namespace tgi::cuda {

// Eight elements are moved at once where the width and all strides allow it, else one.
inline constexpr int kWide = 8;

inline bool is_wide(const Tensor& tensor) {
  return tensor.data == nullptr || (tensor.cols % kWide == 0 && tensor.stride % kWide == 0 &&
                                    reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0);
}

// (rows, columns in `threads` threads of `width`): the first number of a grid may be any, the
// second not above 65,535.
inline LaunchShape elementwise(int64_t rows, int64_t cols, int width) {
  constexpr unsigned kThreads = 128;
  const int64_t per_block = int64_t{kThreads} * width;
  return {.grid = dim3(static_cast<unsigned>(rows),
                       static_cast<unsigned>((cols + per_block - 1) / per_block)),
          .block = dim3(kThreads),
          .shared_bytes = 0,
          .overlaps_previous = true};
}

// Calls use(T{}, std::integral_constant<int, 8 or 1>{}).
template <typename Use>
void with_width(DType dtype, bool wide, Use use) {
  with_element(dtype, [&](auto element) {
    if (wide) {
      use(element, std::integral_constant<int, kWide>{});
    } else {
      use(element, std::integral_constant<int, 1>{});
    }
  });
}

}  // namespace tgi::cuda
