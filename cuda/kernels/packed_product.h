// What the kernels of packed matrices are given, and where each kind of codes has them.
#pragma once

#include <cuda_runtime.h>

#include "cuda/kernels/experts.h"
#include "cuda/kernels/packed.h"

namespace tgi::cuda {

struct PackedProduct {
  PackedShape shape;
  const std::byte* w;  // of a linear
  const float* bias;   // (optional) of a linear
  // Of experts; null: a linear.
  const ExpertPointers* experts;
  const ExpertTile* tiles;
  const int32_t* tokens;  // of each row; null: x has a row for each
  unsigned num_tiles;     // of rows
  int32_t tile_rows;
  int32_t num_rows;
  const void* x;
  int64_t x_stride;
  void* out;
  int64_t out_stride;
  bool out_is_f32;
  // Of packed_shared: (num_splits, num_rows, outputs) where there are several.
  float* partials = nullptr;
  int32_t num_splits = 1;
};

// Of one kind of codes; dtype: of x. stream: any tile of up to 64 rows; shared: up to 64 rows of a
// linear whose groups are not fine; block: tiles of 64 or 128.
struct PackedKernels {
  void (*stream)(cudaStream_t stream, const PackedProduct& product, DType dtype);
  void (*shared)(cudaStream_t stream, const PackedProduct& product, DType dtype);
  void (*block)(cudaStream_t stream, const PackedProduct& product, DType dtype);
  void (*unpack)(cudaStream_t stream, const PackedUnpackLaunch& launch);
  void (*prepare)();
};

PackedKernels packed_int4_kernels();
PackedKernels packed_table4_kernels();
PackedKernels packed_fp4_kernels();
PackedKernels packed_int8_kernels();
PackedKernels packed_f8_kernels();

}  // namespace tgi::cuda
