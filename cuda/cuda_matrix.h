// A matrix on the GPU: dense, row-major (rows, stride), the stride a multiple of 8 elements with
// zeros past the end; or packed integers in groups, as cuda/kernels/packed.h says.
//
// Comes from the checkpoint's mapped bytes through two pinned buffers that are filled by several
// threads and copied in turn, so that the bus and the page cache are both kept busy.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "cuda/device_memory.h"
#include "cuda/kernels/packed.h"
#include "engine/tensor/tensor.h"
#include "engine/tensor/weight.h"

namespace tgi::cuda {

class CudaMatrix final : public Matrix {
 public:
  DType dtype = DType::kBF16;         // dense
  int64_t stride = 0;                 // dense
  std::optional<PackedShape> packed;  // else dense
  Buffer memory;
  std::shared_ptr<const void> alive;  // for those that keep a list of matrices
};

// Pinned buffers and threads of loading; drop it when the weights are there.
class MatrixLoader {
 public:
  explicit MatrixLoader(cudaStream_t stream);
  ~MatrixLoader();

  // Stacks the pieces by rows. Throws kUnsupported for formats and types without a kernel,
  // kInvalidArgument for pieces that don't fit together, kOutOfMemory.
  std::unique_ptr<CudaMatrix> load(std::span<const HostWeight> pieces,
                                   const MatrixStorage& storage);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A row of a dense matrix as (part.cols) numbers of `dtype`, which is f16 or bf16, at `out`.
void write_rounded_row(const WeightPart& part, int64_t row, DType dtype, std::byte* out);

// Throws kUnsupported naming what there is.
int64_t cuda_matrix_bytes(std::string_view format,
                          const MatrixStorage& storage,
                          int64_t rows,
                          int64_t cols);

}  // namespace tgi::cuda
