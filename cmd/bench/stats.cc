#include "cmd/bench/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace tgi::bench {
namespace {

double at_rank(const std::vector<double>& sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace

double percentile(std::vector<double> values, double share) {
  TGI_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  return at_rank(values, share);
}

std::optional<Summary> summarize(std::vector<double> values, double scale) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return Summary{.count = values.size(),
                 .average = scale * sum / static_cast<double>(values.size()),
                 .lowest = scale * values.front(),
                 .highest = scale * values.back(),
                 .p50 = scale * at_rank(values, 0.50),
                 .p90 = scale * at_rank(values, 0.90),
                 .p99 = scale * at_rank(values, 0.99)};
}

Bins bin_values(const std::vector<double>& values, size_t num_bins) {
  TGI_CHECK(num_bins > 0);
  Bins out;
  out.counts.resize(num_bins);
  if (values.empty()) return out;
  out.low = *std::min_element(values.begin(), values.end());
  out.high = percentile(values, 0.99);
  const double width = (out.high - out.low) / static_cast<double>(num_bins);
  for (const double value : values) {
    const double bin = width > 0 ? std::floor((value - out.low) / width) : 0;
    ++out.counts[std::min(static_cast<size_t>(bin), num_bins - 1)];
  }
  return out;
}

}  // namespace tgi::bench
