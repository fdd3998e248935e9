// What the reference device's ops read and write, in doubles.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/cpu/cpu_device_internal.h"
#include "engine/tensor/tensor.h"

namespace tgi {

inline double at(const Tensor& tensor, int64_t row, int64_t col) {
  return static_cast<double>(row_of(tensor, row)[col]);
}

inline void put(const Tensor& tensor, int64_t row, int64_t col, double value) {
  mutable_row_of(tensor, row)[col] = static_cast<float>(value);
}

inline double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

inline double softplus(double x) {
  return x > 30.0 ? x : std::log1p(std::exp(x));
}

inline double cap(double x, double softcap) {
  return softcap == 0.0 ? x : softcap * std::tanh(x / softcap);
}

}  // namespace tgi
