// Counts of observations in buckets with fixed upper bounds, as Prometheus' histograms. Not
// thread-safe: whoever observes owns it and hands out copies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tgi {

class Histogram {
 public:
  // REQUIRES: `bounds` rise. The last bucket, above all of them, is not listed.
  explicit Histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1, 0) {}

  // `count` bounds: start, start * factor, ...
  static std::vector<double> geometric(double start, double factor, int count) {
    std::vector<double> bounds;
    for (double bound = start; count > 0; --count, bound *= factor) bounds.push_back(bound);
    return bounds;
  }

  void observe(double value) {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    ++counts_[static_cast<size_t>(bucket)];
    sum_ += value;
  }

  const std::vector<double>& bounds() const { return bounds_; }
  const std::vector<int64_t>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<int64_t> counts_;
  double sum_ = 0;
};

}  // namespace tgi
