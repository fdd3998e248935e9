// Arithmetic of measured times, apart from the clock so that tests can feed it. Plain functions
// without threads.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace tgi::bench {

// Nearest rank; REQUIRES: `values` is not empty, 0 < share <= 1.
double percentile(std::vector<double> values, double share);
inline double median(std::vector<double> values) {
  return percentile(std::move(values), 0.5);
}

struct Summary {
  size_t count = 0;
  double average = 0;
  double lowest = 0;
  double highest = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
};

// Nothing when there are no values. Every value is multiplied by `scale` (1000: seconds to ms).
std::optional<Summary> summarize(std::vector<double> values, double scale = 1);

// How many of `values` fall into each of `num_bins` bins of equal width between the lowest and the
// 99th percentile; what lies above is in the last one. `low` and `high` are the outer borders.
struct Bins {
  double low = 0;
  double high = 0;
  std::vector<size_t> counts;
};
Bins bin_values(const std::vector<double>& values, size_t num_bins);

}  // namespace tgi::bench
