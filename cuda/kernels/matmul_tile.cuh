// What a CUDA block of the kernels that stream weights does: 16 rows of w times up to 64 rows of x.
// Its warps take turns along k; each multiplies on tensor cores with w as the (16, k) operand and
// the rows of x as the (k, 8) ones, so that a row of x costs no more than the loads of its
// elements.
//
// The order of k within an mma is free as long as both operands agree: lane t of a quad loads 16
// contiguous bytes (k = 8t .. 8t + 7 of 32) of a row, of w as of x, and feeds them to two mma as
// they lie. No shared memory, no ldmatrix; w is read in whole sectors and once.
#pragma once

#include "cuda/kernels/ptx.cuh"

namespace tgi::cuda {

inline constexpr int kStreamWarps = 8;
inline constexpr int kStreamRowsOfW = 16;  // of a CUDA block
inline constexpr int kStreamColumns = 64;  // of k, a warp at a time: 2 loads for each row and lane
inline constexpr int kStreamLoads = kStreamColumns / 32;
inline constexpr int kStreamTileRows = 8;  // of x in one mma

// Two rows of w, 8 elements each, for each load.
struct StreamWeights {
  uint4 at[kStreamLoads][2];
};

template <typename T>
__device__ __forceinline__ StreamWeights
load_weights(const T* row, const T* row_8, int64_t k, int64_t cols) {
  StreamWeights out;
#pragma unroll
  for (int i = 0; i < kStreamLoads; ++i) {
    const int64_t at = k + 32 * i;
    const bool inside = at < cols;
    out.at[i][0] = inside ? load_streaming(row + at) : make_uint4(0, 0, 0, 0);
    out.at[i][1] = inside ? load_streaming(row_8 + at) : make_uint4(0, 0, 0, 0);
  }
  return out;
}

// What a CUDA block multiplies.
template <typename T, typename Out>
struct StreamProduct {
  const T* w;
  int64_t w_stride;
  int32_t outputs;
  int32_t first_output;
  int32_t cols;
  const float* bias;  // (optional)
  int32_t num_rows;   // of x and out; those past them are computed from the last one, not written
  Out* out;           // the first of them
  int64_t out_stride;
};

// What each warp has of its columns, with the bias and in the order of the warps; write(row,
// output, sum) for what there is of both.
template <int kTiles, typename Write>
__device__ __forceinline__ void add_up_warps(const float (&sums)[kTiles][4],
                                             int32_t first_output,
                                             int32_t outputs,
                                             const float* bias,
                                             int32_t num_rows,
                                             Write write) {
  __shared__ float partial[kStreamWarps][kTiles * kStreamTileRows][kStreamRowsOfW + 1];
  const int group = static_cast<int>(threadIdx.x % 32 / 4);
  const int quad = static_cast<int>(threadIdx.x % 4);
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      partial[threadIdx.x / 32][tile * kStreamTileRows + 2 * quad + i % 2][group + 8 * (i / 2)] =
          sums[tile][i];
    }
  }
  __syncthreads();
  for (auto i = static_cast<int32_t>(threadIdx.x); i < kTiles * kStreamTileRows * kStreamRowsOfW;
       i += 32 * kStreamWarps) {
    const int32_t row = i / kStreamRowsOfW;
    const int32_t output = first_output + i % kStreamRowsOfW;
    if (row >= num_rows || output >= outputs) continue;
    float sum = bias == nullptr ? 0.0F : bias[output];
#pragma unroll
    for (int each = 0; each < kStreamWarps; ++each) {
      sum += partial[each][row][i % kStreamRowsOfW];
    }
    write(row, output, sum);
  }
}

// row_of_x(i) is where row i of x is. begin() is called when the first weights are on their way,
// and before x is read.
template <int kTiles, typename T, typename Out, typename RowOfX, typename Begin>
__device__ __forceinline__ void multiply_streamed(const StreamProduct<T, Out>& product,
                                                  RowOfX row_of_x,
                                                  Begin begin) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int group = lane / 4;
  const int quad = lane % 4;
  const int32_t cols = product.cols;
  const T* const w_row =
      product.w + min(product.first_output + group, product.outputs - 1) * product.w_stride;
  const T* const w_row_8 =
      product.w + min(product.first_output + group + 8, product.outputs - 1) * product.w_stride;
  const T* x_rows[kTiles];
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    x_rows[tile] = row_of_x(min(tile * kStreamTileRows + group, product.num_rows - 1));
  }
  float sums[kTiles][4] = {};

  int64_t k = static_cast<int64_t>(warp) * kStreamColumns + quad * 8;
  StreamWeights next = load_weights(w_row, w_row_8, k, cols);
  begin();
  while (k - quad * 8 < cols) {
    const StreamWeights now = next;
    const int64_t at = k;
    k += int64_t{kStreamWarps} * kStreamColumns;
    next = load_weights(w_row, w_row_8, k, cols);
#pragma unroll
    for (int i = 0; i < kStreamLoads; ++i) {
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

  add_up_warps<kTiles>(sums, product.first_output, product.outputs, product.bias, product.num_rows,
                       [&](int32_t row, int32_t output, float sum) {
                         product.out[row * product.out_stride + output] = from_float<Out>(sum);
                       });
}

}  // namespace tgi::cuda
