// See matmul.h. A CUDA block takes 16 rows of w, its warps take turns along k; each warp multiplies
// on tensor cores with w as the (16, k) operand and up to 64 rows of x as the (k, 8) ones, so that
// a row of x costs no more than the loads of its elements.
//
// The order of k within an mma is free as long as both operands agree: lane t of a quad loads 16
// contiguous bytes (k = 8t .. 8t + 7 of 32) of a row, of w as of x, and feeds them to two mma as
// they lie. No shared memory, no ldmatrix; w is read in whole sectors and once.
#include <algorithm>
#include <type_traits>

#include "base/error.h"
#include "cuda/kernels/dispatch.h"
#include "cuda/kernels/matmul.h"
#include "cuda/kernels/ptx.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kRowsOfW = 16;  // of a CUDA block
constexpr int kColumns = 64;  // of k, a warp at a time: 2 loads of 16 bytes for each row and lane
constexpr int kLoads = kColumns / 32;
constexpr int kTileRows = 8;  // of x in one mma

// Two rows of w, 8 elements each, for each load.
struct Weights {
  uint4 at[kLoads][2];
};

template <typename T>
__device__ __forceinline__ Weights
load_weights(const T* row, const T* row_8, int64_t k, int64_t cols) {
  Weights out;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int64_t at = k + 32 * i;
    const bool inside = at < cols;
    out.at[i][0] = inside ? load_streaming(row + at) : make_uint4(0, 0, 0, 0);
    out.at[i][1] = inside ? load_streaming(row_8 + at) : make_uint4(0, 0, 0, 0);
  }
  return out;
}

template <typename T, typename Out, int kTiles>
__global__ void __launch_bounds__(32 * kWarps) matmul_stream(const T* __restrict__ w,
                                                             int64_t w_stride,
                                                             int32_t outputs,
                                                             int32_t cols,
                                                             const T* x,
                                                             int64_t x_stride,
                                                             int32_t rows,
                                                             const float* __restrict__ bias,
                                                             Out* out,
                                                             int64_t out_stride) {
  __shared__ float partial[kWarps][kTiles * kTileRows][kRowsOfW + 1];
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int group = lane / 4;
  const int quad = lane % 4;
  const int32_t first_output = static_cast<int32_t>(blockIdx.x) * kRowsOfW;
  const int32_t first_row = static_cast<int32_t>(blockIdx.y) * kTiles * kTileRows;
  // Rows past the end are computed from the last one and not written.
  const T* const w_row = w + min(first_output + group, outputs - 1) * w_stride;
  const T* const w_row_8 = w + min(first_output + group + 8, outputs - 1) * w_stride;
  const T* x_rows[kTiles];
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    x_rows[tile] = x + min(first_row + tile * kTileRows + group, rows - 1) * x_stride;
  }
  float sums[kTiles][4] = {};

  int64_t k = static_cast<int64_t>(warp) * kColumns + quad * 8;
  // Weights don't depend on the kernel before: the first are on their way while it ends.
  Weights next = load_weights(w_row, w_row_8, k, cols);
  wait_for_previous_kernel();
  launch_next_kernel();
  while (k - quad * 8 < cols) {
    const Weights now = next;
    const int64_t at = k;
    k += int64_t{kWarps} * kColumns;
    next = load_weights(w_row, w_row_8, k, cols);
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const uint4& low = now.at[i][0];
      const uint4& high = now.at[i][1];
      const uint32_t first[4] = {low.x, high.x, low.y, high.y};
      const uint32_t second[4] = {low.z, high.z, low.w, high.w};
      const bool inside = at + 32 * i < cols;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const uint4 values = inside ? *reinterpret_cast<const uint4*>(x_rows[tile] + at + 32 * i)
                                    : make_uint4(0, 0, 0, 0);
        const uint32_t first_x[2] = {values.x, values.y};
        const uint32_t second_x[2] = {values.z, values.w};
        mma_16x8x16<T>(sums[tile], first, first_x);
        mma_16x8x16<T>(sums[tile], second, second_x);
      }
    }
  }

#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      partial[warp][tile * kTileRows + 2 * quad + i % 2][group + 8 * (i / 2)] = sums[tile][i];
    }
  }
  __syncthreads();
  for (auto i = static_cast<int32_t>(threadIdx.x); i < kTiles * kTileRows * kRowsOfW;
       i += 32 * kWarps) {
    const int32_t row = i / kRowsOfW;
    const int32_t output = first_output + i % kRowsOfW;
    if (first_row + row >= rows || output >= outputs) continue;
    float sum = bias == nullptr ? 0.0F : bias[output];
#pragma unroll
    for (int each = 0; each < kWarps; ++each) sum += partial[each][row][i % kRowsOfW];
    out[(first_row + row) * out_stride + output] = from_float<Out>(sum);
  }
}

template <typename T, typename Out, int kTiles>
void launch_tiles(cudaStream_t stream, const MatmulLaunch& args) {
  const int64_t rows_at_once = int64_t{kTiles} * kTileRows;
  launch(stream,
         {.grid = dim3(static_cast<unsigned>((args.outputs + kRowsOfW - 1) / kRowsOfW),
                       static_cast<unsigned>((args.x.rows + rows_at_once - 1) / rows_at_once)),
          .block = dim3(32 * kWarps),
          .shared_bytes = 0,
          .overlaps_previous = true},
         matmul_stream<T, Out, kTiles>, static_cast<const T*>(args.w), args.w_stride,
         static_cast<int32_t>(args.outputs), static_cast<int32_t>(args.x.cols),
         args.x.as<const T>(), args.x.stride, static_cast<int32_t>(args.x.rows), args.bias,
         args.out.as<Out>(), args.out.stride);
}

template <typename T, typename Out>
void launch_rows(cudaStream_t stream, const MatmulLaunch& args) {
  const int64_t rows = args.x.rows;
  if (rows <= 8) return launch_tiles<T, Out, 1>(stream, args);
  if (rows <= 16) return launch_tiles<T, Out, 2>(stream, args);
  if (rows <= 32) return launch_tiles<T, Out, 4>(stream, args);
  launch_tiles<T, Out, 8>(stream, args);
}

template <typename T, typename Out>
__global__ void matmul_plain(const T* w,
                             int64_t w_stride,
                             int32_t outputs,
                             int32_t cols,
                             const T* x,
                             int64_t x_stride,
                             const float* bias,
                             Out* out,
                             int64_t out_stride) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const int64_t row = blockIdx.x;
  const auto output = static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x);
  if (output >= outputs) return;
  const T* const w_row = w + output * w_stride;
  const T* const x_row = x + row * x_stride;
  float sum = 0.0F;
  for (int32_t k = 0; k < cols; ++k) sum += to_float(w_row[k]) * to_float(x_row[k]);
  if (bias != nullptr) sum += bias[output];
  out[row * out_stride + output] = from_float<Out>(sum);
}

// Calls use(T{}, Out{}).
template <typename Use>
void with_types(const MatmulLaunch& args, Use use) {
  with_element(args.x.dtype, [&](auto element) {
    if (args.out.dtype == DType::kF32) return use(element, float{});
    TGI_CHECK(args.out.dtype == args.x.dtype);
    use(element, element);
  });
}

}  // namespace

bool is_aligned(const MatmulLaunch& args) {
  const auto address = [](const void* pointer) {
    return reinterpret_cast<uintptr_t>(pointer) % 16;
  };
  return args.x.cols % 8 == 0 && args.x.stride % 8 == 0 && args.w_stride % 8 == 0 &&
         address(args.x.data) == 0 && address(args.w) == 0;
}

int64_t alignment_of(const MatmulLaunch& args) {
  const auto bits = reinterpret_cast<uintptr_t>(args.x.data) | reinterpret_cast<uintptr_t>(args.w) |
                    reinterpret_cast<uintptr_t>(args.out.data) | kMaxAlignment;
  return static_cast<int64_t>(bits & (~bits + 1));
}

void launch_matmul_stream(cudaStream_t stream, const MatmulLaunch& args) {
  if (args.x.rows == 0) return;
  TGI_CHECK(is_aligned(args));
  with_types(args, [&](auto element, auto result) {
    launch_rows<decltype(element), decltype(result)>(stream, args);
  });
}

void launch_matmul_plain(cudaStream_t stream, const MatmulLaunch& args) {
  if (args.x.rows == 0) return;
  constexpr unsigned kThreads = 128;
  with_types(args, [&](auto element, auto result) {
    using T = decltype(element);
    using Out = decltype(result);
    launch(stream,
           {.grid = dim3(static_cast<unsigned>(args.x.rows),
                         static_cast<unsigned>((args.outputs + kThreads - 1) / kThreads)),
            .block = dim3(kThreads),
            .shared_bytes = 0,
            .overlaps_previous = true},
           matmul_plain<T, Out>, static_cast<const T*>(args.w), args.w_stride,
           static_cast<int32_t>(args.outputs), static_cast<int32_t>(args.x.cols),
           args.x.as<const T>(), args.x.stride, args.bias, args.out.as<Out>(), args.out.stride);
  });
}

}  // namespace tgi::cuda
