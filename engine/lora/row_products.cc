// A block of columns of the matrix is copied so that it is read in order, and stays in the cache
// for all rows of x.
#include "engine/lora/row_products.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/parallel.h"

namespace tgi {
namespace {

constexpr int64_t kBlockCols = 64;
constexpr int64_t kBlockInner = 1024;
constexpr int64_t kLanes = 16;

// Rows [first, first + count) of the matrix, columns of one block, those behind the last one 0.
void pack(const MatrixView& matrix,
          int64_t first,
          int64_t count,
          int64_t first_col,
          int64_t num_cols,
          float* out) {
  std::fill_n(out, count * kBlockCols, 0.0F);
  if (matrix.is_transposed) {
    for (int64_t c = 0; c < num_cols; ++c) {
      const float* from = matrix.data + (first_col + c) * matrix.stride + first;
      for (int64_t r = 0; r < count; ++r) out[r * kBlockCols + c] = from[r];
    }
    return;
  }
  for (int64_t r = 0; r < count; ++r) {
    const float* from = matrix.data + (first + r) * matrix.stride + first_col;
    std::copy_n(from, num_cols, out + r * kBlockCols);
  }
}

// Four at a time, as any x86-64 processor has them.
using Four = float __attribute__((vector_size(16)));

Four load(const float* from) {
  Four out;
  std::memcpy(&out, from, sizeof out);
  return out;
}

void save(const Four& from, float* to) {
  std::memcpy(to, &from, sizeof from);
}

// sums (kLanes) of two rows of x += their products with kLanes columns of the packed block. The
// sums have names of their own, so that they stay in registers.
void add_two_rows(const float* first,
                  const float* second,
                  int64_t count,
                  const float* block,
                  float* first_sums,
                  float* second_sums) {
  Four a0 = load(first_sums);
  Four a1 = load(first_sums + 4);
  Four a2 = load(first_sums + 8);
  Four a3 = load(first_sums + 12);
  Four b0 = load(second_sums);
  Four b1 = load(second_sums + 4);
  Four b2 = load(second_sums + 8);
  Four b3 = load(second_sums + 12);
  for (int64_t i = 0; i < count; ++i, block += kBlockCols) {
    const Four x = Four{} + first[i];
    const Four y = Four{} + second[i];
    const Four c0 = load(block);
    const Four c1 = load(block + 4);
    a0 += x * c0;
    b0 += y * c0;
    a1 += x * c1;
    b1 += y * c1;
    const Four c2 = load(block + 8);
    const Four c3 = load(block + 12);
    a2 += x * c2;
    b2 += y * c2;
    a3 += x * c3;
    b3 += y * c3;
  }
  save(a0, first_sums);
  save(a1, first_sums + 4);
  save(a2, first_sums + 8);
  save(a3, first_sums + 12);
  save(b0, second_sums);
  save(b1, second_sums + 4);
  save(b2, second_sums + 8);
  save(b3, second_sums + 12);
}

}  // namespace

void multiply_rows(int num_threads,
                   const float* x,
                   int64_t count,
                   int64_t inner,
                   const MatrixView& matrix,
                   int64_t cols,
                   float* out) {
  const int64_t num_blocks = (cols + kBlockCols - 1) / kBlockCols;
  parallel_for(num_threads, num_blocks, [&](int64_t index) {
    const int64_t first_col = index * kBlockCols;
    const int64_t num_cols = std::min(kBlockCols, cols - first_col);
    std::vector<float> block(static_cast<size_t>(kBlockInner * kBlockCols));
    // One row more, for the last of an odd number.
    std::vector<float> sums(static_cast<size_t>((count + 1) * kBlockCols), 0.0F);
    for (int64_t begin = 0; begin < inner; begin += kBlockInner) {
      const int64_t length = std::min(kBlockInner, inner - begin);
      pack(matrix, begin, length, first_col, num_cols, block.data());
      for (int64_t row = 0; row < count; row += 2) {
        const float* const first = x + row * inner + begin;
        const float* const second = row + 1 < count ? first + inner : first;
        for (int64_t lane = 0; lane < kBlockCols; lane += kLanes) {
          float* const to = sums.data() + row * kBlockCols + lane;
          add_two_rows(first, second, length, block.data() + lane, to, to + kBlockCols);
        }
      }
    }
    for (int64_t row = 0; row < count; ++row) {
      std::copy_n(sums.data() + row * kBlockCols, num_cols, out + row * cols + first_col);
    }
  });
}

}  // namespace tgi
