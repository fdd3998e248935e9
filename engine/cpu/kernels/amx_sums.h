// Sums of some rows times two panels, side by side in memory while blocks of columns pass by, then
// written to where they belong.
#pragma once

#include <cstdint>

#include "engine/cpu/kernels/kernel_table.h"

namespace tgi {

template <typename V, typename Unit>
struct AmxSums {
  static constexpr int64_t kRows = 256;

  // From here on what is written is more than the caches keep until it is read.
  static constexpr int64_t kStreamedRows = 96;

  alignas(64) float values[kRows * 32];

  float* of(int64_t row) { return values + row * 32; }

  // Rows [row, row + num_rows) of the block's output, with its bias.
  void store(const MatmulBlock& block, int64_t row, int64_t num_rows, int64_t panel) const {
    for (int64_t j = 0; j < 2 && panel + j < block.num_panels; ++j) {
      const int64_t column = (panel + j) * kPanelRows;
      const int64_t width = block.num_outputs - column;
      float* out = block.out + row * block.out_stride + column;
      const float* from = values + j * 16;
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
