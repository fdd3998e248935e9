// See plain_matrix.h.
#include "engine/cpu/plain_matrix.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/cpu/grouped_panels.h"
#include "engine/cpu/panel_matrix.h"
#include "engine/tensor/float8.h"
#include "engine/tensor/half.h"
#include "engine/tensor/weight_element.h"

namespace tgi {
float round_to(DType dtype, float value) {
  if (dtype == DType::kBF16) return bf16_to_f32(f32_to_bf16(value));
  if (dtype == DType::kF16) return f16_to_f32(f32_to_f16(value));
  if (dtype == DType::kF8E4M3) return e4m3_to_f32(f32_to_e4m3(value));
  return value;
}

PlainMatrix::PlainMatrix(std::span<const HostWeight> pieces, const MatrixStorage& how)
    : storage(how) {
  cols = pieces[0].cols;
  for (const HostWeight& piece : pieces) {
    require_format(piece.format, storage, piece.name);
    TGI_CHECK(piece.cols == cols);
    storage.stored ? take_grouped(piece) : take_dense(piece);
    rows += piece.rows;
  }
  if (rounds_to_int8()) take_quantised(pieces);
  size_bytes = static_cast<int64_t>(values_.size() * sizeof(float));
}

std::vector<double> PlainMatrix::rounded(const float* x) const {
  std::vector<double> out(static_cast<size_t>(cols));
  const bool is_int = rounds_to_int8();
  // The values of stored integers are what they are: neither they nor x are rounded.
  const bool is_bf16 = storage.dtype == DType::kBF16 && !storage.stored;
  const int64_t group_size = is_int ? storage.group_size : cols;
  for (int64_t begin = 0; begin < cols; begin += group_size) {
    const int64_t end = std::min(cols, begin + group_size);
    float largest = 0.0F;
    for (int64_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float inverse = largest > 0.0F ? 127.0F / largest : 0.0F;
    for (int64_t i = begin; i < end; ++i) {
      out[static_cast<size_t>(i)] =
          is_int    ? std::nearbyint(x[i] * inverse) * static_cast<double>(largest / 127.0F)
          : is_bf16 ? round_to(DType::kBF16, x[i])
                    : x[i];
    }
  }
  return out;
}

void PlainMatrix::take_dense(const HostWeight& piece) {
  const WeightPart& part = dense_part(piece);
  for (int64_t row = 0; row < piece.rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      values_.push_back(round_to(storage.dtype, weight_element(part, row, col)));
    }
  }
}

void PlainMatrix::take_grouped(const HostWeight& piece) {
  check_grouped(piece, storage);
  for (const GroupedRow& row : grouped_rows(std::span(&piece, 1))) {
    const size_t begin = values_.size();
    values_.resize(begin + static_cast<size_t>(cols));
    dequantise_row(row, cols, piece.grouped.group_size, values_.data() + begin);
  }
}

// Which integers a device chooses is its own affair; the values they stand for are exact.
void PlainMatrix::take_quantised(std::span<const HostWeight> pieces) {
  ThreadPool pool(1);
  const PanelMatrix panels(pieces, storage, generic_kernels(), pool);
  for (int64_t row = 0; row < rows; ++row) panels.copy_row(row, values_.data() + row * cols);
}

}  // namespace tgi
