// See random_weights.h.
#include <algorithm>

#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/random_weights.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

struct PartShape {
  RandomPart random;
  DType stored;
  int64_t cols;
  int64_t row_stride;
  int64_t col_stride;
};

template <typename T>
__global__ void random_weights(PartShape part, int64_t stride, T* out) {
  const int64_t row = blockIdx.x;
  for (int64_t col = threadIdx.x; col < stride; col += blockDim.x) {
    const int64_t element =
        part.random.first_element + row * part.row_stride + col * part.col_stride;
    const float value =
        col < part.cols ? random_weight(part.stored, part.random.key, element) : 0.0F;
    out[row * stride + col] = from_float<T>(value);
  }
}

}  // namespace

void launch_random_weights(
    cudaStream_t stream, const WeightPart& part, DType dtype, int64_t stride, void* out) {
  const PartShape shape = {.random = *part.random,
                           .stored = part.dtype,
                           .cols = part.cols,
                           .row_stride = part.row_stride,
                           .col_stride = part.col_stride};
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    launch(stream, {.grid = dim3(static_cast<unsigned>(part.rows)), .block = dim3(256)},
           random_weights<T>, shape, stride, static_cast<T*>(out));
  });
}

}  // namespace tgi::cuda
