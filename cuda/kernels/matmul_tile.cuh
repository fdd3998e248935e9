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

// A lane's part of w: two rows, 8 elements each, for each load.
template <typename T>
class WeightRows {
 public:
  struct Loaded {
    uint4 at[kStreamLoads][2];
  };

  // Rows past the end are computed from the last one and not written.
  __device__ __forceinline__
  WeightRows(const T* w, int64_t w_stride, int32_t outputs, int32_t cols, int32_t first_output)
      : cols_(cols) {
    const auto group = static_cast<int32_t>(threadIdx.x % 32 / 4);
    row_ = w + min(first_output + group, outputs - 1) * w_stride;
    row_8_ = w + min(first_output + group + 8, outputs - 1) * w_stride;
  }

  __device__ __forceinline__ Loaded load(int64_t k) const {
    Loaded out;
#pragma unroll
    for (int i = 0; i < kStreamLoads; ++i) {
      const int64_t at = k + 32 * i;
      const bool inside = at < cols_;
      out.at[i][0] = inside ? load_streaming(row_ + at) : make_uint4(0, 0, 0, 0);
      out.at[i][1] = inside ? load_streaming(row_8_ + at) : make_uint4(0, 0, 0, 0);
    }
    return out;
  }

  // Where this lane begins along k.
  static __device__ __forceinline__ int64_t first_k() {
    return static_cast<int64_t>(threadIdx.x / 32) * kStreamColumns + threadIdx.x % 4 * 8;
  }

 private:
  const T* row_;
  const T* row_8_;
  int32_t cols_;
};

// Where the sums of the warps meet.
template <int kTiles>
struct StreamPartials {
  float at[kStreamWarps][kTiles * kStreamTileRows][kStreamRowsOfW + 1];
};

// The sums of this warp. `next` are the weights at first_k(); x_rows are the rows of x of this
// lane's group of four, one of each tile.
template <typename T, int kTiles>
__device__ __forceinline__ void stream_products(const WeightRows<T>& w,
                                                typename WeightRows<T>::Loaded next,
                                                const T* const (&x_rows)[kTiles],
                                                int32_t cols,
                                                StreamPartials<kTiles>& partial) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int group = lane / 4;
  const int quad = lane % 4;
  float sums[kTiles][4] = {};
  int64_t k = WeightRows<T>::first_k();
  while (k - quad * 8 < cols) {
    const typename WeightRows<T>::Loaded now = next;
    const int64_t at = k;
    k += int64_t{kStreamWarps} * kStreamColumns;
    next = w.load(k);
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
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      partial.at[warp][tile * kStreamTileRows + 2 * quad + i % 2][group + 8 * (i / 2)] =
          sums[tile][i];
    }
  }
}

// After a barrier: out (num_rows, outputs) from its first row, the warps' sums added in order.
template <typename Out, int kTiles>
__device__ __forceinline__ void write_products(const StreamPartials<kTiles>& partial,
                                               const float* bias,
                                               int32_t first_output,
                                               int32_t outputs,
                                               int32_t num_rows,
                                               Out* out,
                                               int64_t out_stride) {
  for (auto i = static_cast<int32_t>(threadIdx.x); i < kTiles * kStreamTileRows * kStreamRowsOfW;
       i += 32 * kStreamWarps) {
    const int32_t row = i / kStreamRowsOfW;
    const int32_t output = first_output + i % kStreamRowsOfW;
    if (row >= num_rows || output >= outputs) continue;
    float sum = bias == nullptr ? 0.0F : bias[output];
#pragma unroll
    for (int each = 0; each < kStreamWarps; ++each) {
      sum += partial.at[each][row][i % kStreamRowsOfW];
    }
    out[row * out_stride + output] = from_float<Out>(sum);
  }
}

}  // namespace tgi::cuda
