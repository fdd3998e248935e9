// See packed.h: which kernel multiplies, and those that need no speed.
#include <algorithm>

#include "base/error.h"
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/packed.h"
#include "cuda/kernels/packed_codes.cuh"
#include "cuda/kernels/packed_product.h"
#include "cuda/kernels/ptx.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr unsigned kThreads = 128;

PackedKernels kernels_for(PackedCodes codes) {
  switch (codes) {
    case PackedCodes::kInt4:
      return packed_int4_kernels();
    case PackedCodes::kTable4:
      return packed_table4_kernels();
    case PackedCodes::kFp4:
      return packed_fp4_kernels();
    case PackedCodes::kF8E4M3:
      return packed_f8_kernels();
    case PackedCodes::kInt8:
      break;
  }
  return packed_int8_kernels();
}

// Any x, one thread an output of a row; slow.
template <typename T>
__global__ void packed_plain(const __grid_constant__ PackedProduct product) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const unsigned index = blockIdx.x % product.num_tiles;
  const auto output =
      static_cast<int32_t>(blockIdx.x / product.num_tiles * blockDim.x + threadIdx.x);
  if (output >= product.shape.outputs) return;
  const std::byte* w = product.w;
  const float* bias = product.bias;
  ExpertTile tile = {.expert = 0, .first_row = static_cast<int32_t>(index), .num_rows = 1};
  if (product.experts != nullptr) {
    tile = product.tiles[index];
    if (tile.num_rows == 0) return;  // its expert may have no matrix
    w = static_cast<const std::byte*>(product.experts[tile.expert].w);
    bias = product.experts[tile.expert].bias;
  }
  for (int32_t row = tile.first_row; row < tile.first_row + tile.num_rows; ++row) {
    const int32_t from = product.tokens == nullptr ? row : product.tokens[row];
    const T* const x = static_cast<const T*>(product.x) + from * product.x_stride;
    float sum = 0.0F;
    for (int32_t k = 0; k < product.shape.cols; ++k) {
      sum += packed_value(w, product.shape, output, k) * to_float(x[k]);
    }
    if (bias != nullptr) sum += bias[output];
    const int64_t at = row * product.out_stride + output;
    if (product.out_is_f32) {
      static_cast<float*>(product.out)[at] = sum;
    } else {
      static_cast<T*>(product.out)[at] = from_float<T>(sum);
    }
  }
}

template <typename T>
__global__ void packed_embed(const __grid_constant__ PackedShape shape,
                             const std::byte* table,
                             const int32_t* token_ids,
                             const TokenRow* rows,
                             float multiplier,
                             bool adds,
                             T* out,
                             int64_t out_stride) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  const auto col = static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x);
  if (col >= shape.cols) return;
  const int32_t id = token_ids == nullptr ? rows[row].position : token_ids[row];
  const int32_t from = token_ids != nullptr && id >= shape.outputs ? 0 : id;
  T& to = out[row * out_stride + col];
  float value = packed_value(table, shape, from, col) * multiplier;
  if (adds) value += to_float(to);
  to = from_float<T>(value);
}

bool has_aligned_x(const Tensor& x) {
  return x.cols % 8 == 0 && x.stride % 8 == 0 && reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
}

void launch_plain(cudaStream_t stream, const PackedProduct& product, DType dtype) {
  const int64_t num_blocks = (product.shape.outputs + int64_t{kThreads} - 1) / kThreads;
  with_element(dtype, [&](auto element) {
    launch(stream,
           {.grid = dim3(static_cast<unsigned>(product.num_tiles * num_blocks)),
            .block = dim3(kThreads),
            .shared_bytes = 0,
            .overlaps_previous = true},
           packed_plain<decltype(element)>, product);
  });
}

// So many CUDA blocks that every multiprocessor has some, each of a few chunks at least.
int32_t num_splits(const PackedShape& shape) {
  constexpr int32_t kBlocks = 256;
  constexpr int32_t kLeastChunks = 4;
  const int32_t of_outputs = (shape.outputs + 127) / 128;
  return std::max(1, std::min(kBlocks / of_outputs, shape.num_chunks / kLeastChunks));
}

}  // namespace

int64_t packed_partials_bytes(const PackedShape& shape) {
  return int64_t{num_splits(shape)} * kMaxPackedStreamRows * shape.outputs * 4;
}

void prepare_packed_kernels() {
  for (const PackedCodes codes : {PackedCodes::kInt4, PackedCodes::kTable4, PackedCodes::kFp4,
                                  PackedCodes::kInt8, PackedCodes::kF8E4M3}) {
    kernels_for(codes).prepare();
  }
}

void launch_packed_matmul(cudaStream_t stream, const PackedLaunch& args) {
  if (args.x.rows == 0) return;
  const bool out_is_f32 = args.out.dtype == DType::kF32;
  TGI_CHECK(out_is_f32 || args.out.dtype == args.x.dtype);
  TGI_CHECK(args.x.cols == args.shape.cols);
  PackedProduct product = {.shape = args.shape,
                           .w = static_cast<const std::byte*>(args.w),
                           .bias = args.bias,
                           .experts = nullptr,
                           .tiles = nullptr,
                           .tokens = nullptr,
                           .num_tiles = static_cast<unsigned>(args.x.rows),
                           .tile_rows = 1,
                           .num_rows = static_cast<int32_t>(args.x.rows),
                           .x = args.x.data,
                           .x_stride = args.x.stride,
                           .out = args.out.data,
                           .out_stride = args.out.stride,
                           .out_is_f32 = out_is_f32,
                           .partials = args.partials,
                           .num_splits = 1};
  if (!has_aligned_x(args.x)) return launch_plain(stream, product, args.x.dtype);
  const PackedKernels kernels = kernels_for(args.shape.codes);
  const bool is_streamed = args.one_kernel || out_is_f32 || args.x.rows <= kMaxPackedStreamRows;
  if (is_streamed && !args.one_kernel && !out_is_f32 && args.x.rows > 8 && !args.shape.is_fine()) {
    if (args.partials != nullptr) product.num_splits = num_splits(args.shape);
    product.num_tiles = 1;
    return kernels.shared(stream, product, args.x.dtype);
  }
  product.tile_rows = !is_streamed ? 128 : args.x.rows <= 8 ? 8 : args.x.rows <= 32 ? 32 : 64;
  product.num_tiles =
      static_cast<unsigned>((args.x.rows + product.tile_rows - 1) / product.tile_rows);
  (is_streamed ? kernels.stream : kernels.block)(stream, product, args.x.dtype);
}

bool may_unpack(const PackedLaunch& launch) {
  return launch.out.dtype == launch.x.dtype && has_aligned_x(launch.x);
}

void launch_packed_unpack(cudaStream_t stream, const PackedUnpackLaunch& args) {
  TGI_CHECK(args.first_output % kPanelOutputs == 0 && args.out.cols == args.shape.cols);
  TGI_CHECK(args.out.cols % 4 == 0 && args.out.stride % 4 == 0);
  kernels_for(args.shape.codes).unpack(stream, args);
}

void launch_packed_experts(cudaStream_t stream,
                           const PackedShape& shape,
                           const ExpertMatmulLaunch& args,
                           const ExpertRoutes& routes) {
  if (routes.num_tokens == 0) return;
  TGI_CHECK(args.out.dtype == args.x.dtype && args.out.rows == routes.num_rows());
  TGI_CHECK(args.x.cols == shape.cols && args.outputs == shape.outputs);
  const PackedProduct product = {.shape = shape,
                                 .w = nullptr,
                                 .bias = nullptr,
                                 .experts = args.experts,
                                 .tiles = routes.memory.tiles,
                                 .tokens = args.x_is_routed ? nullptr : routes.memory.tokens,
                                 .num_tiles = static_cast<unsigned>(routes.num_tiles),
                                 .tile_rows = routes.tile_rows,
                                 .num_rows = routes.num_rows(),
                                 .x = args.x.data,
                                 .x_stride = args.x.stride,
                                 .out = args.out.data,
                                 .out_stride = args.out.stride,
                                 .out_is_f32 = false,
                                 .partials = nullptr,
                                 .num_splits = 1};
  if (!has_aligned_x(args.x)) return launch_plain(stream, product, args.x.dtype);
  const PackedKernels kernels = kernels_for(shape.codes);
  (routes.has_blocks ? kernels.block : kernels.stream)(stream, product, args.x.dtype);
}

void launch_packed_embed(cudaStream_t stream, const PackedEmbedLaunch& args) {
  if (args.out.rows == 0) return;
  with_element(args.out.dtype, [&](auto element) {
    using T = decltype(element);
    launch(stream,
           {.grid = dim3(static_cast<unsigned>(args.out.rows),
                         (static_cast<unsigned>(args.out.cols) + kThreads - 1) / kThreads),
            .block = dim3(kThreads),
            .shared_bytes = 0,
            .overlaps_previous = true},
           packed_embed<T>, args.shape, static_cast<const std::byte*>(args.table), args.token_ids,
           args.rows, args.multiplier, args.adds, args.out.as<T>(), args.out.stride);
  });
}

}  // namespace tgi::cuda
