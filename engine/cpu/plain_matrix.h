// A matrix of the reference device: what any device's matrix stands for, as f32 in plain rows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/tensor/tensor.h"
#include "engine/tensor/weight.h"

namespace tgi {

// `value` as a number of `dtype`, in f32. REQUIRES: one that has no scale, so not kInt8.
float round_to(DType dtype, float value);

class PlainMatrix final : public Matrix {
 public:
  // Stacks the pieces by rows. Throws as PanelMatrix does.
  PlainMatrix(std::span<const HostWeight> pieces, const MatrixStorage& how);

  double at(int64_t row, int64_t col) const {
    return values_[static_cast<size_t>(row * cols + col)];
  }

  // What the matrix is multiplied with in place of x (cols): rounded to int8 where the matrix was
  // rounded to integers, to bf16 where it is bf16, else x.
  std::vector<double> rounded(const float* x) const;

  MatrixStorage storage;

 private:
  bool rounds_to_int8() const {
    return storage.quantization != Quantization::kNone && !storage.stored;
  }
  void take_dense(const HostWeight& piece);
  void take_grouped(const HostWeight& piece);
  void take_quantised(std::span<const HostWeight> pieces);

  std::vector<float> values_;  // (rows, cols)
};

}  // namespace tgi
