// From integers in groups (engine/tensor/weight.h), or from numbers that are rounded to such, to
// the panels of cuda/kernels/packed.h, on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cuda/kernels/packed.h"
#include "engine/tensor/weight.h"

namespace tgi::cuda {

// How the kernels hold a matrix of that storage; nothing where it is dense, or with groups that no
// kernel has or of more than kMaxPackedCols columns, so that it has to be decoded.
std::optional<PackedShape> packed_shape(const MatrixStorage& storage, int64_t rows, int64_t cols);

// One row of the stacked pieces.
struct PackedRow {
  const HostWeight* piece = nullptr;
  int64_t row = 0;  // of the piece
};

// Throws kInvalidArgument where a piece is not what was planned for, naming it.
void check_packed_piece(const HostWeight& piece, const MatrixStorage& storage);

// The rows of all pieces, one below the other.
std::vector<PackedRow> packed_rows(std::span<const HostWeight> pieces);

// Writes a panel of up to kPanelOutputs rows; all shape.panel_bytes of it.
void pack_panel(std::span<const PackedRow> rows, const PackedShape& shape, std::byte* out);

}  // namespace tgi::cuda
