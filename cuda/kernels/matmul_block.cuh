// What a CUDA block of a matmul with many rows of x does: kRows of them times 128 rows of w. Both
// come through shared memory, kBlockStages steps of 64 elements of k ahead (cp.async), and each of
// the 8 warps multiplies half of the rows with a quarter of the outputs, so that a fragment that is
// read from shared memory serves several mma.
//
// How w gets into shared memory is up to its Weights: DenseWeights copies, others unpack
// (packed_block.cuh).
//
// k is gone through in order: a row's bits depend on neither kRows nor the other rows.
#pragma once

#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/shared_rows.cuh"

namespace tgi::cuda {

inline constexpr int kBlockThreads = 256;
inline constexpr int kBlockOutputs = 128;
inline constexpr int kBlockDepth = 64;  // elements of k in a stage
inline constexpr int kBlockStages = 3;  // so that two blocks of 128 rows fit an SM of sm_90
inline constexpr int kBlockRowBytes = kBlockDepth * 2;

constexpr int block_shared_bytes(int rows) {
  return kBlockStages * (rows + kBlockOutputs) * kBlockRowBytes;
}

template <typename T>
struct BlockProduct {
  int32_t outputs;
  int32_t first_output;
  int32_t cols;       // a multiple of 8
  const float* bias;  // (optional)
  int32_t num_rows;   // of x and out, up to kRows
  T* out;             // the first of them
  int64_t out_stride;
};

inline constexpr int kBlockChunks = kBlockRowBytes / 16;
inline constexpr int kBlockRowsAtOnce = kBlockThreads / kBlockChunks;  // that all threads copy

// A row-major matrix of T. Weights have two functions, called by all threads: fetch(k) begins to
// read columns k to k + 63 of the block's outputs where that needs registers, put(k, to) brings
// them to shared memory, as rows that SharedRows places, by cp.async or by stores. Columns past the
// end become zeros.
template <typename T>
class DenseWeights {
  static constexpr int kCopies = kBlockOutputs / kBlockRowsAtOnce;

 public:
  __device__ __forceinline__
  DenseWeights(const T* w, int64_t stride, int32_t first_output, int32_t outputs, int32_t cols)
      : cols_(cols) {
    const auto row = static_cast<int32_t>(threadIdx.x) / kBlockChunks;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int32_t output = min(first_output + row + i * kBlockRowsAtOnce, outputs - 1);
      rows_[i] = w + own_column() + output * stride;
    }
  }

  __device__ __forceinline__ void fetch(int32_t /*k*/) {}

  __device__ __forceinline__ void put(int32_t k, std::byte* to) const {
    const bool is_inside = k + own_column() < cols_;
    to += SharedRows<kBlockRowBytes>::offset(static_cast<int>(threadIdx.x) / kBlockChunks,
                                             static_cast<int>(threadIdx.x) % kBlockChunks);
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      cp_async_16(to + i * kBlockRowsAtOnce * kBlockRowBytes, rows_[i] + k, is_inside);
    }
  }

 private:
  static __device__ __forceinline__ int own_column() {
    return static_cast<int>(threadIdx.x) % kBlockChunks * 8;
  }

  const int32_t cols_;
  const T* rows_[kCopies];
};

template <typename T, int kRows, typename Weights = DenseWeights<T>>
class MatmulBlock {
  using Rows = SharedRows<kBlockRowBytes>;
  static constexpr int kChunks = kBlockChunks;
  static constexpr int kRowsAtOnce = kBlockRowsAtOnce;
  static constexpr int kCopiesOfX = kRows / kRowsAtOnce;
  static constexpr int kStageBytes = (kRows + kBlockOutputs) * kBlockRowBytes;
  static constexpr int kWarpRows = kRows / 2;
  static constexpr int kWarpOutputs = kBlockOutputs / 4;
  static constexpr int kRowTiles = kWarpRows / 16;
  static constexpr int kOutputTiles = kWarpOutputs / 8;

 public:
  // row_of_x(i) is where row i of x is.
  template <typename RowOfX>
  __device__ __forceinline__ MatmulBlock(const BlockProduct<T>& product,
                                         const Weights& weights,
                                         RowOfX row_of_x)
      : product_(product), thread_(static_cast<int>(threadIdx.x)), weights_(weights) {
    const int row = thread_ / kChunks;
#pragma unroll
    for (int i = 0; i < kCopiesOfX; ++i) {
      x_[i] = row_of_x(min(row + i * kRowsAtOnce, product.num_rows - 1)) + own_column();
    }
  }

  __device__ __forceinline__ void run() {
    const int num_stages = (product_.cols + kBlockDepth - 1) / kBlockDepth;
    weights_.fetch(0);
#pragma unroll
    for (int stage = 0; stage < kBlockStages - 1; ++stage) load(stage, stage);
    int place = 0;
    for (int stage = 0; stage < num_stages; ++stage) {
      cp_async_wait<kBlockStages - 2>();
      __syncthreads();  // the stage is there, and nobody works on the one before it any more
      load(stage + kBlockStages - 1, place == 0 ? kBlockStages - 1 : place - 1);
      multiply(place);
      place = place == kBlockStages - 1 ? 0 : place + 1;
    }
    write();
  }

 private:
  __device__ __forceinline__ int own_column() const {
    return thread_ % kChunks * 8;
  }
  __device__ __forceinline__ int first_row() const {
    return thread_ / 32 % 2 * kWarpRows;
  }
  __device__ __forceinline__ int first_output() const {
    return thread_ / 64 * kWarpOutputs;
  }

  // Past the end of k there are zeros, on both sides: what lies there may be NaN.
  __device__ __forceinline__ void load(int stage, int place) {
    const int32_t k = stage * kBlockDepth;
    const bool is_inside = k + own_column() < product_.cols;
    std::byte* const of_x = dynamic_shared() + place * kStageBytes;
    std::byte* const own_of_x = of_x + Rows::offset(thread_ / kChunks, thread_ % kChunks);
#pragma unroll
    for (int i = 0; i < kCopiesOfX; ++i) {
      cp_async_16(own_of_x + i * kRowsAtOnce * kBlockRowBytes, x_[i] + k, is_inside);
    }
    weights_.put(k, of_x + kRows * kBlockRowBytes);
    cp_async_commit();
    weights_.fetch(k + kBlockDepth);
  }

  __device__ __forceinline__ void multiply(int place) {
    const int lane = thread_ % 32;
    const std::byte* const x = dynamic_shared() + place * kStageBytes;
    const std::byte* const w = x + kRows * kBlockRowBytes;
#pragma unroll
    for (int k = 0; k < kBlockDepth / 16; ++k) {
      uint32_t from_w[kOutputTiles][2];
#pragma unroll
      for (int tile = 0; tile < kOutputTiles; tile += 2) {
        uint32_t both[4];
        const int row = first_output() + tile * 8 + lane % 8 + lane / 16 * 8;
        ldmatrix_x4(both, w + Rows::offset(row, 2 * k + lane / 8 % 2));
        from_w[tile][0] = both[0];
        from_w[tile][1] = both[1];
        from_w[tile + 1][0] = both[2];
        from_w[tile + 1][1] = both[3];
      }
#pragma unroll
      for (int rows = 0; rows < kRowTiles; ++rows) {
        uint32_t from_x[4];
        ldmatrix_x4(from_x,
                    x + Rows::offset(first_row() + rows * 16 + lane % 16, 2 * k + lane / 16));
#pragma unroll
        for (int tile = 0; tile < kOutputTiles; ++tile) {
          mma_16x8x16<T>(sums_[rows][tile], from_x, from_w[tile]);
        }
      }
    }
  }

  __device__ __forceinline__ void write() const {
    const int lane = thread_ % 32;
#pragma unroll
    for (int tile = 0; tile < kOutputTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int32_t output = product_.first_output + first_output() + tile * 8 + lane % 4 * 2 + i;
        if (output >= product_.outputs) continue;
        const float bias = product_.bias == nullptr ? 0.0F : product_.bias[output];
#pragma unroll
        for (int rows = 0; rows < kRowTiles; ++rows) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int row = first_row() + rows * 16 + half * 8 + lane / 4;
            if (row >= product_.num_rows) continue;
            product_.out[row * product_.out_stride + output] =
                from_float<T>(sums_[rows][tile][2 * half + i] + bias);
          }
        }
      }
    }
  }

  const BlockProduct<T> product_;
  const int thread_;
  Weights weights_;
  const T* x_[kCopiesOfX];
  float sums_[kRowTiles][kOutputTiles][4] = {};
};

}  // namespace tgi::cuda
