#include "engine/cpu/matmul_tasks.h"

#include <algorithm>

#include "engine/cpu/cpu_device_internal.h"

namespace tgi {
namespace {

constexpr int64_t kMaxStreamedRows = 8;

// How much of x stays in the second-level cache while all panels pass: processors with a matrix
// unit have 2 MiB.
constexpr int64_t kTileRowsBytes = 640 << 10;

const MatmulKernel& kernel_for(const KernelTable& kernels, const PanelMatrix& w, bool many) {
  const auto type = static_cast<size_t>(w.layout.type);
  return many ? kernels.matmul_many[type] : kernels.matmul[type];
}

}  // namespace

MatmulTasks::MatmulTasks(const KernelTable& kernels,
                         const PanelMatrix& w,
                         int64_t num_rows,
                         int num_threads,
                         int64_t num_matrices)
    : w_(w),
      kernel_(kernel_for(kernels, w, num_rows >= w.min_many_rows)),
      num_rows_(num_rows),
      many_(num_rows >= w.min_many_rows),
      x_stride_bytes_(prepared_row_bytes(kernel_.x_bytes(w.cols, w.layout.group_size))),
      rows_per_task_(num_rows) {
  if (many_) {
    cut_tiles(w.num_panels(), num_threads, num_matrices);
  } else {
    cut(w.num_panels(), num_threads);
  }
}

void MatmulTasks::prepare(const float* x, std::byte* out) const {
  kernel_.prepare(x, w_.cols, w_.layout.group_size, out);
}

bool MatmulTasks::take_plain(const Tensor& x) {
  constexpr int64_t kPageBytes = 4096;
  const int64_t stride = x.stride * static_cast<int64_t>(sizeof(float));
  if (many_ || !takes_plain_x(w_.layout.type) || w_.cols % 2 != 0 || stride % kPageBytes == 0)
    return false;
  x_stride_bytes_ = stride;
  return true;
}

void MatmulTasks::cut(int64_t num_panels, int64_t num_threads) {
  if (num_threads == 1) {
    num_panel_tasks_ = (num_panels + 3) / 4;
    return;
  }
  // With few rows the weights stream from memory: long runs of them, so that what is fetched ahead
  // is of use, but several per thread, so that one that was held up does not hold up the rest.
  if (num_rows_ <= kMaxStreamedRows && num_panels >= 16 * num_threads) {
    panels_per_task_ = round_up((num_panels + 4 * num_threads - 1) / (4 * num_threads), 4);
    num_panel_tasks_ = (num_panels + panels_per_task_ - 1) / panels_per_task_;
    return;
  }
  // At least two tasks per thread, so that the last one to finish is not far behind.
  const auto tasks = [&](int64_t panels) { return (num_panels + panels - 1) / panels; };
  const int64_t max_row_tasks = (num_rows_ + 23) / 24;
  num_row_tasks_ = std::clamp(2 * num_threads / tasks(4), int64_t{1}, max_row_tasks);
  while (panels_per_task_ > 1 && tasks(panels_per_task_) * num_row_tasks_ < 2 * num_threads) {
    panels_per_task_ /= 2;
  }
  num_panel_tasks_ = tasks(panels_per_task_);
  rows_per_task_ = (num_rows_ + num_row_tasks_ - 1) / num_row_tasks_;
  num_row_tasks_ = (num_rows_ + rows_per_task_ - 1) / rows_per_task_;
}

// Whole tiles of rows, as many as stay in the cache; the panels are read once for each.
void MatmulTasks::cut_tiles(int64_t num_panels, int64_t num_threads, int64_t num_matrices) {
  const int64_t resident_bytes = std::min(x_stride_bytes_, kMatmulPartBytes);
  const int64_t rows_that_fit = std::max<int64_t>(1, kTileRowsBytes / (32 * resident_bytes));
  const int64_t row_tiles = (num_rows_ + 31) / 32;
  const int64_t row_tasks = (row_tiles + rows_that_fit - 1) / rows_that_fit;
  rows_per_task_ = (row_tiles + row_tasks - 1) / row_tasks * 32;
  num_row_tasks_ = (num_rows_ + rows_per_task_ - 1) / rows_per_task_;
  // Long runs of panels, since each is fetched during the one before; but about eight tasks per
  // thread, so that the last one to finish is not far behind.
  const int64_t even = num_panels * num_row_tasks_ * num_matrices / (8 * num_threads);
  panels_per_task_ = std::clamp(even - even % 2, int64_t{2}, int64_t{32});
  num_panel_tasks_ = (num_panels + panels_per_task_ - 1) / panels_per_task_;
}

void MatmulTasks::run_columns(const std::byte* x,
                              int64_t first,
                              int64_t count,
                              const Tensor& out) const {
  kernel_.block({.x = x,
                 .x_stride_bytes = x_stride_bytes_,
                 .num_rows = num_rows_,
                 .k = w_.cols,
                 .group_size = w_.layout.group_size,
                 .head = w_.layout.head,
                 .panels = w_.panel(first / kPanelRows),
                 .panel_bytes = w_.panel_bytes,
                 .num_panels = (count + kPanelRows - 1) / kPanelRows,
                 .out = out.as<float>(),
                 .out_stride = out.stride,
                 .num_outputs = count});
}

const std::byte* MatmulTasks::panels_of(int64_t task) const {
  return task < num_tasks() ? w_.panel(panel_task(task) * panels_per_task_) : nullptr;
}

void MatmulTasks::run(int64_t task,
                      const std::byte* x,
                      const float* bias,
                      const Tensor& out,
                      const std::byte* next) const {
  const int64_t row_task = many_ ? task / num_panel_tasks_ : task % num_row_tasks_;
  const int64_t panel = panel_task(task) * panels_per_task_;
  const int64_t row = row_task * rows_per_task_;
  const int64_t column = panel * kPanelRows;
  const std::byte* const panels = w_.panel(panel);
  kernel_.block({.x = x + row * x_stride_bytes_,
                 .x_stride_bytes = x_stride_bytes_,
                 .num_rows = std::min(rows_per_task_, num_rows_ - row),
                 .k = w_.cols,
                 .group_size = w_.layout.group_size,
                 .head = w_.layout.head,
                 .panels = panels,
                 .panel_bytes = w_.panel_bytes,
                 .num_panels = std::min(panels_per_task_, w_.num_panels() - panel),
                 .next_panels = next == panels ? nullptr : next,
                 .bias = bias == nullptr ? nullptr : bias + column,
                 .out = mutable_row_of(out, row) + column,
                 .out_stride = out.stride,
                 .num_outputs = std::min(panels_per_task_ * kPanelRows, w_.rows - column)});
}

}  // namespace tgi
