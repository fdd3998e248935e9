// Where rows lie in shared memory so that ldmatrix meets no bank twice.
#pragma once

#include <cuda_runtime.h>

namespace tgi::cuda {

// Rows of kRowBytes in shared memory, their 16-byte chunks exchanged so that the same chunk of 8
// rows in succession, which ldmatrix reads at once, lies in 8 different groups of 4 banks.
template <int kRowBytes>
struct SharedRows {
  static_assert(kRowBytes % 32 == 0);
  static constexpr int kChunks = kRowBytes / 16;
  // Row after row, the first chunk meets 8 / kPower of the 8 groups of banks it may fall into.
  static constexpr int kPower = kChunks % 8 == 0 ? 8 : kChunks % 4 == 0 ? 4 : 2;

  static __device__ __forceinline__ int offset(int row, int chunk) {
    return (row * kChunks + (chunk ^ key(row))) * 16;
  }

  // offset(row + rows, chunk + chunks) from `of` = offset(row, chunk), where no sum carries: with
  // constants an xor and an immediate. (Left to itself the compiler keeps each offset in a
  // register.)
  static __device__ __forceinline__ int ahead(int of, int rows, int chunks) {
    const int low = (chunks % kPower) ^ key(rows);
    return (of ^ (low * 16)) + (rows * kChunks + chunks / kPower * kPower) * 16;
  }

 private:
  static __device__ __forceinline__ int key(int row) { return row / (8 / kPower) % kPower; }
};

}  // namespace tgi::cuda
