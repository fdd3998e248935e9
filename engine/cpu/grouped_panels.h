// A checkpoint's own integers put into panels as they are: nothing is rounded, but the numbers
// of a table (code_tables.h).
// Done once, at load; shared with the reference device, which wants their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/cpu/panel_layout.h"
#include "engine/tensor/weight.h"

namespace tgi {

// A row of a "grouped" piece.
struct GroupedRow {
  const int8_t* codes = nullptr;  // (cols)
  const float* scales = nullptr;  // (num_groups)
  const int8_t* zeros = nullptr;  // (optional) (num_groups)
  const float* minima = nullptr;  // (optional) (num_groups)
  ScaleFactors factors{};         // (optional) of this row
  const float* table = nullptr;   // (optional) that codes are places in
};

// Throws kInvalidArgument when the piece does not fit `storage`: no codes, other groups, zero
// points that were not announced, minima without leave or announced in vain, scales of another
// form.
void check_grouped(const HostWeight& piece, const MatrixStorage& storage);

// All rows of the stacked pieces.
std::vector<GroupedRow> grouped_rows(std::span<const HostWeight> pieces);

// out[col] = scale * (code - zero) + minimum, or scale * table[code], (cols).
void dequantise_row(const GroupedRow& row, int64_t cols, int64_t group_size, float* out);

// Fills the panel (layout.bytes(), zeroed) from up to 16 rows.
void pack_grouped_panel(std::span<const GroupedRow> rows,
                        const PanelLayout& layout,
                        std::byte* out);

}  // namespace tgi
