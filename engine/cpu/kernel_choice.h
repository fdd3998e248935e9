// Which of two kernels for one kind of matrix is faster depends on the processor, so it is
// measured.
#pragma once

#include <cstdint>

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/panel_layout.h"

namespace tgi {

// From how many rows of x on matmul_many beats matmul for matrices of this layout, and with any
// number above; INT64_MAX where it never does or is not there. Takes some milliseconds, once in a
// process for each type, group size and kind of head.
int64_t measure_min_many_rows(const KernelTable& kernels, const PanelLayout& layout);

}  // namespace tgi
