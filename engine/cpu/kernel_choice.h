// Which of two kernels for one kind of matrix is faster depends on the processor, so it is
// measured.
#pragma once

#include <cstdint>

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/panel_layout.h"

namespace tgi {

// matmul_many takes no groups below 32: its tiles sum 32 columns at a time.
constexpr bool many_takes(const PanelLayout& layout) {
  return !layout.quantised() || layout.group_size % 32 == 0;
}

// The number of rows of x from which on matmul_many beats matmul for matrices of this layout;
// INT64_MAX where it never does or there is none. Takes some milliseconds, once in a process for
// each type, group size and kind of head.
int64_t measure_min_many_rows(const KernelTable& kernels, const PanelLayout& layout);

}  // namespace tgi
