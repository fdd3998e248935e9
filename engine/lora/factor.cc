#include "engine/lora/factor.h"

#include "base/error.h"
#include "engine/tensor/weight_element.h"

namespace tgi {

Factor whole_factor(const StoredTensor& tensor) {
  TGI_CHECK(tensor.shape.size() == 2);
  return {.tensor = &tensor,
          .rows = tensor.shape[0],
          .cols = tensor.shape[1],
          .first = 0,
          .row_stride = tensor.shape[1]};
}

std::vector<float> read_factor(const Checkpoint& checkpoint, const Factor& factor) {
  const DType dtype = *factor.tensor->dtype;
  const auto bytes = checkpoint.bytes(*factor.tensor);
  if (factor.rows * factor.cols == factor.tensor->num_elements() && factor.first == 0 &&
      factor.col_stride == 1) {
    return read_elements(bytes, dtype);
  }
  std::vector<float> out;
  out.reserve(static_cast<size_t>(factor.rows * factor.cols));
  for (int64_t row = 0; row < factor.rows; ++row) {
    const int64_t begin = factor.first + row * factor.row_stride;
    for (int64_t col = 0; col < factor.cols; ++col) {
      out.push_back(read_element(bytes.data(), dtype, begin + col * factor.col_stride));
    }
  }
  return out;
}

HostWeight slice_factor(const Checkpoint& checkpoint,
                        const Factor& factor,
                        Range rows,
                        Range cols) {
  const int64_t first =
      factor.first + rows.begin * factor.row_stride + cols.begin * factor.col_stride;
  const DType dtype = *factor.tensor->dtype;
  const auto bytes = checkpoint.bytes(*factor.tensor);
  return {.name = factor.tensor->name,
          .format = "dense",
          .rows = rows.count,
          .cols = cols.count,
          .parts = {{.role = "weight",
                     .data = bytes.data() + static_cast<size_t>(first) * dtype_size(dtype),
                     .dtype = dtype,
                     .rows = rows.count,
                     .cols = cols.count,
                     .row_stride = factor.row_stride,
                     .col_stride = factor.col_stride}}};
}

}  // namespace tgi
