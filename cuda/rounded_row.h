// A row of plain numbers rounded to integers in groups while it is loaded: by the rule of the cpu
// backend (engine/cpu/kernels/quantise.h), scales rounded to bf16 first.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/tensor/weight.h"

namespace tgi::cuda {

struct RoundedRow {
  std::vector<int8_t> codes;  // (cols)
  std::vector<float> scales;  // (num_groups); NaN where a number of the group is not finite
};

// bits: 4 or 8. The last group is filled up with zeros.
void round_row(const WeightPart& part, int64_t row, int bits, int32_t group_size, RoundedRow& out);

}  // namespace tgi::cuda
