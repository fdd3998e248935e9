// A part of attention_decode.cu: what one warp does with a slice of keys and values for the query
// heads of a kv head, which are the rows of mma.
#pragma once

#include <algorithm>

#include "cuda/kernels/attention_tiles.cuh"

namespace tgi::cuda {

inline constexpr int kSlice = 16;     // tokens: the depth of one mma
inline constexpr int kHeadRows = 16;  // query heads of one pass
inline constexpr int kMergeRows = 8;  // query heads whose sums the warps of a block merge at a time
inline constexpr int kRingBytes = 96 << 10;  // two blocks on an SM of sm_90, one on one of sm_89

template <typename C, int kDim>
struct DecodeShape {
  static constexpr int kRowBytes = kDim * static_cast<int>(sizeof(C));
  static constexpr int kValuesAt = kSlice * kRowBytes;  // in a slice, after the keys
  static constexpr int kSliceBytes = 2 * kSlice * kRowBytes;
  static constexpr int kWarps = kRowBytes <= 256 ? 4 : 2;
  static constexpr int kStages = std::min(8, kRingBytes / (kWarps * kSliceBytes));
  static constexpr int kSharedBytes = kWarps * kStages * kSliceBytes;
  static_assert(kStages >= 2);
  static_assert(kMergeRows * kDim * sizeof(float) <= kSliceBytes);  // sums wait in a free slice
};

// What of an item is visible: with a sliding window perhaps nothing.
struct Span {
  int32_t begin;        // first visible token
  int32_t first_slice;  // begin, rounded down
  int32_t end;
};

// The slopes of a pass's heads, read where they are needed: few models have any, and a register
// kept for them would be taken from all others.
struct HeadSlopes {
  const float* slopes;  // of all heads; null: there are none
  int32_t first_head;   // of the pass
  int num_heads;
  int32_t position;  // of the query

  __device__ __forceinline__ float of_row(int row) const {
    return row < num_heads ? slopes[first_head + row] : 0.0F;
  }
};

// The sums of one warp for up to 16 query heads. Lane l has of the score accumulators the columns
// (tokens) of mma; the columns (dimensions) of `sums` are told by the place they are stored to.
template <typename T, typename C, int kDim>
struct HeadRows {
  static constexpr bool kIsF8 = sizeof(C) == 1;
  using Shape = DecodeShape<C, kDim>;
  using Rows = SharedRows<Shape::kRowBytes>;

  uint32_t q[kDim / 16][4];
  float sums[kDim / 8][4];
  SoftmaxRows softmax;

  // `heads`: the first head of the pass, of `num_heads` that are left.
  __device__ __forceinline__ void start(const T* heads, int num_heads, int head_dim, int lane) {
    softmax = SoftmaxRows{};
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
      for (float& x : sums[n]) x = 0.0F;
    }
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int head = lane / 4 + part % 2 * 8;
        // Where keys are f8, a lane's four neighbours come out of one register.
        const int column = kIsF8 ? 4 * (lane % 4) + part / 2 * 2 : 2 * (lane % 4) + part / 2 * 8;
        const bool valid = head < num_heads && 16 * step < head_dim;
        q[step][part] =
            valid ? *reinterpret_cast<const uint32_t*>(heads + head * head_dim + 16 * step + column)
                  : 0;
      }
    }
  }

  // Two chains of sums for each of the two column groups: half as long to wait for.
  __device__ __forceinline__ void score(const std::byte* keys, int lane, float (&out)[2][4]) const {
    float odd[2][4] = {};
    const int matrix = lane / 8;
    const int first = kIsF8 ? Rows::offset(lane % 8 + matrix % 2 * 8, matrix / 2)
                            : Rows::offset(lane % 8 + matrix / 2 * 8, matrix % 2);
#pragma unroll
    for (int step = 0; step < kDim / 16; step += 2) {
      uint32_t k[2][4];  // of steps `step` and `step` + 1: b of columns 0..7, b of columns 8..15
      if constexpr (kIsF8) {
        uint32_t raw[4];
        ldmatrix_x4(raw, keys + Rows::ahead(first, 0, step));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          k[i / 2][i % 2 * 2] = pair_of_f8<T, 0, 1>(raw[i]);
          k[i / 2][i % 2 * 2 + 1] = pair_of_f8<T, 2, 3>(raw[i]);
        }
      } else {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          ldmatrix_x4(k[i], keys + Rows::ahead(first, 0, 2 * (step + i)));
        }
      }
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        mma_16x8x16<T>(out[n], q[step], {k[0][2 * n], k[0][2 * n + 1]});
        mma_16x8x16<T>(odd[n], q[step + 1], {k[1][2 * n], k[1][2 * n + 1]});
      }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) out[i / 4][i % 4] += odd[i / 4][i % 4];
  }

  __device__ __forceinline__ void add_values(const std::byte* values,
                                             const float (&weights)[2][4],
                                             int lane) {
    const uint32_t p[4] = {
        pack<T>(weights[0][0], weights[0][1]), pack<T>(weights[0][2], weights[0][3]),
        pack<T>(weights[1][0], weights[1][1]), pack<T>(weights[1][2], weights[1][3])};
    const int matrix = lane / 8;
    const int first = Rows::offset(lane % 8 + matrix % 2 * 8, matrix / 2);
#pragma unroll
    for (int chunk = 0; chunk < Rows::kChunks; chunk += 2) {
      uint32_t v[4];
      ldmatrix_x4_transposed(v, values + Rows::ahead(first, 0, chunk));
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if constexpr (kIsF8) {
          // Each 16-bit element of the matrix is two dimensions, 2c and 2c + 1, of one token.
          float(&even)[4] = sums[2 * (chunk + i)];
          float(&odd)[4] = sums[2 * (chunk + i) + 1];
          mma_16x8x16<T>(even, p,
                         {pair_of_f8<T, 0, 2>(v[2 * i]), pair_of_f8<T, 0, 2>(v[2 * i + 1])});
          mma_16x8x16<T>(odd, p,
                         {pair_of_f8<T, 1, 3>(v[2 * i]), pair_of_f8<T, 1, 3>(v[2 * i + 1])});
        } else {
          mma_16x8x16<T>(sums[chunk + i], p, {v[2 * i], v[2 * i + 1]});
        }
      }
    }
  }

  __device__ __forceinline__ void attend(const std::byte* slice,
                                         int32_t token,
                                         const Span& span,
                                         const ScoreScale& scale,
                                         const HeadSlopes& slopes,
                                         bool has_upper,
                                         int lane) {
    float scores[2][4] = {};
    score(slice, lane, scores);
    apply_softcap(scale, scores);
    if (scale.has_alibi) {
      const float slope[2] = {slopes.of_row(lane / 4), slopes.of_row(lane / 4 + 8)};
      add_alibi(scale, slope, {slopes.position, slopes.position}, token + lane % 4 * 2, scores);
    }
    if (token < span.begin || token + kSlice > span.end) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int32_t at = token + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (at < span.begin || at >= span.end) scores[i / 4][i % 4] = kMinusInfinity;
      }
    }
    float rescale[2];
    online_softmax(remaining_multiplier(scale), has_upper, scores, softmax, rescale);
    rescale_rows(rescale, sums);
    add_values(slice + Shape::kValuesAt, scores, lane);
  }

  // Rows 8 * half .. of the sums, as (kMergeRows, kDim) floats; groups of 8 columns are exchanged
  // so that rows do not meet in the same banks.
  static __device__ __forceinline__ int place(int row, int column) {
    return row * kDim + (column ^ (row % 4 * 8));
  }
  __device__ __forceinline__ void store_half(float* to, int half, int lane) const {
    const int row = lane / 4;
    const int quad = lane % 4;
#pragma unroll
    for (int n = 0; n < kDim / 8; n += 2) {
      const float a = half == 0 ? sums[n][0] : sums[n][2];
      const float b = half == 0 ? sums[n][1] : sums[n][3];
      const float c = half == 0 ? sums[n + 1][0] : sums[n + 1][2];
      const float d = half == 0 ? sums[n + 1][1] : sums[n + 1][3];
      if constexpr (kIsF8) {
        store(to + place(row, 8 * n + 4 * quad), Vector<float, 4>{{a, c, b, d}});
      } else {
        store(to + place(row, 8 * n + 2 * quad), Vector<float, 2>{{a, b}});
        store(to + place(row, 8 * n + 8 + 2 * quad), Vector<float, 2>{{c, d}});
      }
    }
  }
};

}  // namespace tgi::cuda
