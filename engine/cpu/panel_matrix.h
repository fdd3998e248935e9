// A matrix packed into panels (panel_layout.h), made once at load by all threads. Serves both
// matmul and row lookup, so that a tied embedding is stored once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/panel_layout.h"
#include "engine/cpu/thread_pool.h"
#include "engine/tensor/tensor.h"
#include "engine/tensor/weight.h"

namespace tgi {

class PanelMatrix final : public Matrix {
 public:
  // Throws kInvalidArgument for a group size that there are no kernels for.
  static PanelLayout layout_for(const MatrixStorage& storage, PairOrder pair_order, int64_t cols);
  static int64_t bytes(const PanelLayout& layout, int64_t rows);

  // Stacks the pieces by rows. Throws kUnsupported naming the format of a piece that is not what
  // `storage` says, kInvalidArgument when its parts do not fit its shape, kOutOfMemory.
  // `memory` (optional): size_bytes of zeros on a line of 64 bytes, that outlive it; else it takes
  // some of its own.
  PanelMatrix(std::span<const HostWeight> pieces,
              const MatrixStorage& storage,
              const KernelTable& kernels,
              ThreadPool& pool,
              std::byte* memory = nullptr);

  int64_t num_panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
  const std::byte* panel(int64_t index) const { return panels_ + index * panel_bytes; }
  // out (cols) = row, or += multiplier * row.
  void copy_row(int64_t row, float* out) const;
  void add_row(int64_t row, float multiplier, float* out) const;

  PanelLayout layout;
  int64_t panel_bytes = 0;
  int64_t min_many_rows = 0;  // of x, from which on KernelTable::matmul_many is faster

 private:
  void pack_dense(std::span<const HostWeight> pieces, const KernelTable& kernels, ThreadPool& pool);
  void pack_grouped(std::span<const HostWeight> pieces, ThreadPool& pool);
  std::byte* mutable_panel(int64_t index) { return panels_ + index * panel_bytes; }

  Buffer data_;  // (optional) where the panels lie
  std::byte* panels_ = nullptr;
};

// The value of one element of a panel's 16 rows.
float panel_element(const PanelLayout& layout, const std::byte* panel, int64_t row, int64_t col);

// The one part of a dense piece, checked against its shape; shared with the reference device.
const WeightPart& dense_part(const HostWeight& piece);

// Throws kUnsupported unless the format is the one of `storage`.
void require_format(std::string_view format, const MatrixStorage& storage, std::string_view name);

}  // namespace tgi
