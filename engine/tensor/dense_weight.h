// A matrix of floats in memory as a device takes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "engine/tensor/weight.h"

namespace tgi {

// Does not own the values; row_stride in elements.
inline HostWeight dense_weight(
    std::string name, const float* values, int64_t rows, int64_t cols, int64_t row_stride) {
  return {.name = std::move(name),
          .format = "dense",
          .rows = rows,
          .cols = cols,
          .parts = {{.role = "weight",
                     .data = reinterpret_cast<const std::byte*>(values),
                     .dtype = DType::kF32,
                     .rows = rows,
                     .cols = cols,
                     .row_stride = row_stride}}};
}

}  // namespace tgi
