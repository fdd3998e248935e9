#include "engine/quantize/gguf/tensor_encoder.h"

#include <cmath>

#include "base/parallel.h"

namespace tgi {
namespace {

FloatMatrix read_source(const SourceModel& source, const TensorEntry& entry) {
  if (!entry.is_vector()) return source.read_matrix(entry);
  FloatMatrix out(1, entry.cols);
  out.values = source.read_vector(entry);
  return out;
}

// Of one source: (rows, cols) as it is stored.
FloatMatrix stored_values(const SourceModel& source,
                          const GgufTensorPlan& tensor,
                          const TensorEntry& entry) {
  FloatMatrix all = read_source(source, entry);
  for (float& value : all.values) {
    if (tensor.change == gguf::Change::kPlusOne) value += 1.0F;
    if (tensor.change == gguf::Change::kMinusExp) value = -std::exp(value);
  }
  if (tensor.rows.empty()) return all;
  // Vectors are in order by their single numbers.
  const auto num_rows = static_cast<int64_t>(tensor.rows.size());
  const int64_t cols = static_cast<int64_t>(all.values.size()) / num_rows;
  FloatMatrix out(num_rows, cols);
  for (int64_t row = 0; row < num_rows; ++row) {
    const float* from = all.values.data() + tensor.rows[static_cast<size_t>(row)] * cols;
    std::copy(from, from + cols, out.values.data() + row * cols);
  }
  return out;
}

std::vector<std::byte> encoded(const FloatMatrix& values,
                               const GgmlType& type,
                               const std::vector<float>* importance,
                               int num_threads) {
  const int64_t blocks_of_row = values.cols / type.block_size;
  const int64_t row_bytes = blocks_of_row * type.block_bytes;
  std::vector<std::byte> out(static_cast<size_t>(values.rows * row_bytes));
  parallel_for(num_threads, values.rows, [&](int64_t row) {
    type.encode(values.values.data() + row * values.cols, blocks_of_row,
                importance == nullptr ? nullptr : importance->data(), out.data() + row * row_bytes);
  });
  return out;
}

}  // namespace

void TensorEncoder::encode(const GgufTensorPlan& tensor,
                           const GgmlType& type,
                           const ColumnImportance& importance,
                           const std::function<void(std::span<const std::byte>)>& write) const {
  if (tensor.sources.empty()) {
    write(std::as_bytes(std::span(tensor.values)));
    return;
  }
  for (const TensorEntry* entry : tensor.sources) {
    FloatMatrix values = stored_values(source, tensor, *entry);
    // The rows of a block type are those of the tensor; a vector is one.
    if (tensor.is_vector()) {
      values.rows = 1;
      values.cols = static_cast<int64_t>(values.values.size());
    }
    const auto it = importance.find(entry);
    write(encoded(values, type, it == importance.end() ? nullptr : &it->second, num_threads));
  }
}

}  // namespace tgi
