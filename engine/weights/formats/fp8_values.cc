#include "engine/weights/formats/fp8_values.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>

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

// The scales of a stored matrix.
class GridScales {
 public:
  GridScales(const Checkpoint& checkpoint,
             const MatrixSpec& spec,
             const StoredTensor& scale,
             const ScaleGrid& grid)
      : scales_(checkpoint, scale),
        is_single_(scale.num_elements() == 1),
        line_scales_(grid.shape(spec.rows, spec.cols)[1]),
        block_rows_(grid.block_rows) {}

  float at(int64_t row, int64_t block) const {
    return scales_.number(is_single_ ? 0 : row / block_rows_ * line_scales_ + block);
  }

 private:
  const ArrayReader scales_;
  const bool is_single_;
  const int64_t line_scales_;
  const int64_t block_rows_;
};

// Calls use(index in the block, code, factor) for the elements of one row of it.
template <typename Use>
void visit_row(const ArrayReader& values,
               const GridScales& scales,
               const MatrixSpec& spec,
               const ScaleGrid& grid,
               int64_t stored_row,
               Range cols,
               Use use) {
  int64_t in_block = -1;
  float factor = 0.0F;
  for (int64_t col = 0; col < cols.count; ++col) {
    const int64_t stored_col = cols.begin + col;
    if (stored_col / grid.block_cols != in_block) {
      in_block = stored_col / grid.block_cols;
      factor = scales.at(stored_row, in_block);
    }
    const uint8_t code = values.byte(stored_row * spec.cols + stored_col);
    if (!std::isfinite(kValues[code] * factor)) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("tensor {}: element ({}, {}) times its scale {} is not a finite "
                              "number; is the file damaged?",
                              values.name(), stored_row, stored_col, factor));
    }
    use(col, code, factor);
  }
}

}  // namespace

StoredForm fp8_form(std::string quantised_as, const ScaleGrid& grid, int64_t cols) {
  return {.quantised_as = std::move(quantised_as),
          .bits = 8,
          .group_size = grid.block_cols >= cols ? 0 : grid.block_cols,
          .is_f8 = true};
}

HostWeight slice_fp8(const Checkpoint& checkpoint,
                     const MatrixSpec& spec,
                     const StoredTensor& weight,
                     const StoredTensor& scale,
                     const ScaleGrid& grid,
                     Range rows,
                     Range cols,
                     const MatrixStorage& storage) {
  const ArrayReader values(checkpoint, weight);
  const GridScales scales(checkpoint, spec, scale, grid);
  const auto for_rows = [&](auto use) {
    decode_parallel(rows.count, cols.count, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        visit_row(values, scales, spec, grid, rows.begin + row, cols,
                  [&](int64_t col, uint8_t code, float factor) { use(row, col, code, factor); });
      }
    });
  };
  if (!storage.stored) {
    ScratchVector<float> out(static_cast<size_t>(rows.count * cols.count));
    for_rows([&](int64_t row, int64_t col, uint8_t code, float factor) {
      out[static_cast<size_t>(row * cols.count + col)] = kValues[code] * factor;
    });
    return to_host_weight(spec.name, rows.count, cols.count, std::move(out));
  }
  DecodedBlock block(spec.name, rows, cols);
  block.cut_groups(cols, grid.block_cols >= spec.cols ? 0 : grid.block_cols, false);
  for_rows([&](int64_t row, int64_t col, uint8_t code, float factor) {
    block.codes[static_cast<size_t>(row * cols.count + col)] = static_cast<int8_t>(code);
    const int32_t group = block.group_of[static_cast<size_t>(col)];
    block.scales[static_cast<size_t>(row * block.num_groups + group)] = factor;
  });
  return to_host_weight(std::move(block), storage);
}

}  // namespace tgi
