// What a calibration text says about the inputs of a matmul: the sum of x x^T over its tokens,
// which is all that GPTQ wants to know.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/tensor/tensor.h"

namespace tgi {

class GramMatrix {
 public:
  explicit GramMatrix(int64_t size);

  // Rows of x, f32 in host memory: (num_tokens, size).
  void add(const Tensor& x, int num_threads);

  int64_t size() const { return size_; }
  int64_t num_tokens() const { return num_tokens_; }

  // (size, size); the lower triangle is the sum, the rest is not filled in until symmetrize().
  std::vector<float>& values() { return values_; }
  const std::vector<float>& values() const { return values_; }
  void symmetrize();

 private:
  int64_t size_;
  int64_t num_tokens_ = 0;
  std::vector<float> values_;
};

}  // namespace tgi
