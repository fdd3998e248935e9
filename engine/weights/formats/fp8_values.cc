#include "engine/weights/formats/fp8_values.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "engine/tensor/float8.h"

namespace tgi {
namespace {

constexpr std::array<float, 256> all_values() {
  std::array<float, 256> out{};
  for (size_t i = 0; i < out.size(); ++i) out[i] = e4m3_to_f32(static_cast<uint8_t>(i));
  return out;
}

constexpr std::array<float, 256> kValues = all_values();

}  // namespace

HostWeight decode_fp8(const Checkpoint& checkpoint,
                      const MatrixSpec& spec,
                      const StoredTensor& weight,
                      const StoredTensor& scale,
                      const ScaleGrid& grid,
                      Range rows,
                      Range cols) {
  const ArrayReader values(checkpoint, weight);
  const ArrayReader scales(checkpoint, scale);
  const bool is_single = scale.num_elements() == 1;
  const int64_t line_scales = grid.shape(spec.rows, spec.cols)[1];
  ScratchVector<float> out(static_cast<size_t>(rows.count * cols.count));
  decode_parallel(rows.count, cols.count, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t stored_row = rows.begin + row;
      float* const to = out.data() + row * cols.count;
      int64_t in_block = -1;
      float factor = 0.0F;
      for (int64_t col = 0; col < cols.count; ++col) {
        const int64_t stored_col = cols.begin + col;
        if (stored_col / grid.block_cols != in_block) {
          in_block = stored_col / grid.block_cols;
          factor =
              scales.number(is_single ? 0 : stored_row / grid.block_rows * line_scales + in_block);
        }
        const float value = kValues[values.byte(stored_row * spec.cols + stored_col)] * factor;
        if (!std::isfinite(value)) {
          throw Error(Code::kInvalidArgument,
                      fmt::format("tensor {}: element ({}, {}) times its scale {} is not a finite "
                                  "number; is the file damaged?",
                                  weight.name, stored_row, stored_col, factor));
        }
        to[col] = value;
      }
    }
  });
  return to_host_weight(spec.name, rows.count, cols.count, std::move(out));
}

}  // namespace tgi
