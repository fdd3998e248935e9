// One matmul cut into tasks for the threads of a pool: by panels first, by rows too when there are
// few panels. Bits don't depend on the cut.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/panel_matrix.h"
#include "engine/tensor/tensor.h"

namespace tgi {

class MatmulTasks {
 public:
  // For `num_rows` rows of x and that matrix: which kernel runs, and how rows are prepared for it.
  // `num_matrices` are multiplied with by the same loop.
  MatmulTasks(const KernelTable& kernels,
              const PanelMatrix& w,
              int64_t num_rows,
              int num_threads,
              int64_t num_matrices = 1);

  // Of a row of x as the kernel wants it.
  int64_t x_stride_bytes() const { return x_stride_bytes_; }
  void prepare(const float* x, std::byte* out) const;

  int64_t num_tasks() const { return num_panel_tasks_ * num_row_tasks_; }

  // Whether the rows need not be prepared; run then takes them as they are. Not where their places
  // in the first-level cache are all the same.
  bool take_plain(const Tensor& x);

  // The panels of a task, nullptr when there is none of that number.
  const std::byte* panels_of(int64_t task) const;

  // x: the prepared rows. `out` has as many. `next` (optional): the panels that the thread will
  // probably work on afterwards; they are fetched meanwhile.
  void run(int64_t task,
           const std::byte* x,
           const float* bias,
           const Tensor& out,
           const std::byte* next = nullptr) const;

  // All rows, but only outputs [first, first + count), to the first columns of `out`. `first` is a
  // multiple of kPanelRows.
  void run_columns(const std::byte* x, int64_t first, int64_t count, const Tensor& out) const;

 private:
  void cut(int64_t num_panels, int64_t num_threads);
  void cut_tiles(int64_t num_panels, int64_t num_threads, int64_t num_matrices);
  int64_t panel_task(int64_t task) const {
    return many_ ? task % num_panel_tasks_ : task / num_row_tasks_;
  }

  const PanelMatrix& w_;
  const MatmulKernel& kernel_;
  const int64_t num_rows_;
  const bool many_;  // rows, for a kernel of tiles
  int64_t x_stride_bytes_;
  // Tasks of the same panels follow each other; with tiles those of the same rows.
  int64_t panels_per_task_ = 4;
  int64_t num_panel_tasks_ = 1;
  int64_t num_row_tasks_ = 1;
  int64_t rows_per_task_ = 0;
};

}  // namespace tgi
