// A matrix as small integers with a scale for each group of columns of a row: what every quantiser
// makes and every quantised storage format spells in its own way.
//
//   w[r][c] = scales[r][g] * (codes[r][c] - zeros[r][g]),   g = c / group_size
#pragma once

#include <cstdint>
#include <vector>

namespace tgi {

struct GroupedMatrix {
  int64_t rows = 0;        // out_features
  int64_t cols = 0;        // in_features
  int32_t bits = 0;        // 4 or 8; a code is in [-2^(bits-1), 2^(bits-1))
  int32_t group_size = 0;  // columns, divides cols; cols: one group a row

  std::vector<int8_t> codes;  // (rows, cols)
  std::vector<float> scales;  // (rows, num_groups), finite
  std::vector<int8_t> zeros;  // (rows, num_groups), in the range of a code; empty: all 0, symmetric

  int64_t num_groups() const { return cols / group_size; }
};

}  // namespace tgi
