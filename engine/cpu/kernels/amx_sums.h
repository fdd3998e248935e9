// Sums of some rows times two panels, side by side in memory while blocks of columns pass by, then
// written to where they belong. There is room for those of several pairs of panels.
#pragma once

#include <cstdint>

#include "engine/cpu/kernels/kernel_table.h"

namespace tgi {

// Some rows and columns of x, or groups of them, and the panels that pass by.
struct AmxPart {
  int64_t row = 0, num_rows = 0;
  int64_t first_panel = 0, end_panel = 0;
  int64_t begin = 0, end = 0;
  int64_t count = 0;  // columns, or groups, of whole rows

  bool is_last() const { return end == count; }
  // Where the sums of two panels wait; one place does where they needn't.
  int64_t pair(int64_t panel) const { return end - begin == count ? 0 : (panel - first_panel) / 2; }

  // What is multiplied when two panels are done with the part: may be behind the block's panels.
  struct Place {
    int64_t panel = 0;
    int64_t begin = 0;
  };
  Place after(int64_t panel) const {
    if (panel + 2 < end_panel) return {panel + 2, begin};
    return is_last() ? Place{end_panel, 0} : Place{first_panel, end};
  }
};

// Calls run(part) for all of a block whose rows are `count` columns, or groups, of which a part has
// at most `part_count`. Sums are complete when part.is_last().
template <int64_t kRows, int64_t kPanels, typename Run>
void for_amx_parts(const MatmulBlock& block, int64_t count, int64_t part_count, const Run& run) {
  const auto end_of = [](int64_t begin, int64_t size, int64_t all) {
    return begin + size < all ? begin + size : all;
  };
  for (int64_t row = 0; row < block.num_rows; row += kRows) {
    for (int64_t panel = 0; panel < block.num_panels; panel += kPanels) {
      AmxPart part{.row = row,
                   .num_rows = end_of(row, kRows, block.num_rows) - row,
                   .first_panel = panel,
                   .end_panel = end_of(panel, kPanels, block.num_panels),
                   .count = count};
      for (; part.begin < count; part.begin = part.end) {
        part.end = end_of(part.begin, part_count, count);
        run(part);
      }
    }
  }
}

template <typename V, typename Unit>
struct AmxSums {
  static constexpr int kPairs = 16;
  static constexpr int64_t kRows = 256;

  // From here on what is written is more than the caches keep until it is read.
  static constexpr int64_t kStreamedRows = 96;

  alignas(64) float values[kPairs * kRows * 32];

  float* of(int64_t row, int64_t pair) { return values + (pair * kRows + row) * 32; }

  // Rows [row, row + num_rows) of the block's output, with its bias, from those of `pair`.
  void store(
      const MatmulBlock& block, int64_t row, int64_t num_rows, int64_t panel, int64_t pair) const {
    for (int64_t j = 0; j < 2 && panel + j < block.num_panels; ++j) {
      const int64_t column = (panel + j) * kPanelRows;
      const int64_t width = block.num_outputs - column;
      float* out = block.out + row * block.out_stride + column;
      const float* from = values + pair * kRows * 32 + j * 16;
      const bool whole_lines = width >= kPanelRows && block.out_stride % kPanelRows == 0 &&
                               reinterpret_cast<uintptr_t>(out) % 64 == 0;
      if (block.bias == nullptr && whole_lines && block.num_rows >= kStreamedRows) {
        for (int64_t r = 0; r < num_rows; ++r) {
          Unit::stream_line(out + r * block.out_stride, from + r * 32);
        }
        continue;
      }
      for (int64_t r = 0; r < num_rows; ++r, out += block.out_stride, from += 32) {
        V sum = V::load(from);
        if (block.bias != nullptr) sum = sum + V::load_first(block.bias + column, width);
        sum.store_first(out, width);
      }
    }
  }
};

}  // namespace tgi
