// Which of two kernels of one type is faster depends on the processor, so it is measured.
#pragma once

#include <array>
#include <cstdint>

#include "engine/cpu/kernels/kernel_table.h"

namespace tgi {

// From how many rows of x on matmul_many beats matmul, by PanelType; INT64_MAX where there is none.
// Takes some milliseconds, once in a process for each table.
const std::array<int64_t, kNumPanelTypes>& measure_min_many_rows(const KernelTable& kernels);

}  // namespace tgi
