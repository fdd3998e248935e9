#include "engine/quantize/gram.h"

#include <algorithm>

#include "base/error.h"
#include "base/parallel.h"
#include "engine/quantize/blas.h"

namespace tgi {
namespace {

constexpr int64_t kGramRowsPerTask = 128;

}  // namespace

GramMatrix::GramMatrix(int64_t size) : size_(size), values_(static_cast<size_t>(size * size)) {}

void GramMatrix::add(const Tensor& x, int num_threads) {
  TGI_CHECK(x.dtype == DType::kF32 && x.cols == size_);
  num_tokens_ += x.rows;
  const int64_t num_tasks = (size_ + kGramRowsPerTask - 1) / kGramRowsPerTask;
  // The longest rows of the triangle first.
  parallel_for(num_threads, num_tasks, [&](int64_t task) {
    const int64_t begin = (num_tasks - 1 - task) * kGramRowsPerTask;
    const int64_t end = std::min(size_, begin + kGramRowsPerTask);
    multiply(true, end - begin, end, x.rows, 1.0F, x.as<const float>() + begin, x.stride,
             x.as<const float>(), x.stride, 1.0F, values_.data() + begin * size_, size_);
  });
}

void GramMatrix::symmetrize() {
  constexpr int64_t kTile = 64;
  for (int64_t tile = 0; tile < size_; tile += kTile) {
    for (int64_t row = tile; row < size_; ++row) {
      const int64_t end = std::min(tile + kTile, row);
      for (int64_t col = tile; col < end; ++col) {
        values_[static_cast<size_t>(col * size_ + row)] =
            values_[static_cast<size_t>(row * size_ + col)];
      }
    }
  }
}

}  // namespace tgi
