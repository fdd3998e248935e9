// Counts of observations in buckets with fixed upper bounds, as Prometheus' histograms. Not
// thread-safe: whoever observes owns it and hands out copies. For many threads: shared_histogram.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tgi {

class Histogram {
 public:
  // REQUIRES: `bounds` rise. The last bucket, above all of them, is not listed.
  explicit Histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1, 0) {}

  // What somebody else counted. REQUIRES: one count more than bounds.
  Histogram(std::vector<double> bounds, std::vector<int64_t> counts, double sum)
      : bounds_(std::move(bounds)), counts_(std::move(counts)), sum_(sum) {
    TGI_CHECK(counts_.size() == bounds_.size() + 1);
  }

  // `count` bounds: start, start * factor, ...
  static std::vector<double> geometric(double start, double factor, int count) {
    std::vector<double> bounds;
    for (double bound = start; count > 0; --count, bound *= factor) bounds.push_back(bound);
    return bounds;
  }

  // `count` bounds up to `last`: last / count, 2 * last / count, ...
  static std::vector<double> linear(double last, int count) {
    std::vector<double> bounds;
    for (int i = 1; i <= count; ++i) bounds.push_back(last / count * i);
    return bounds;
  }

  // The first bucket whose bound reaches `value`, the last one when none does. NaN is put in the
  // first one.
  static size_t bucket_of(const std::vector<double>& bounds, double value) {
    return static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), value) -
                               bounds.begin());
  }

  void observe(double value) {
    ++counts_[bucket_of(bounds_, value)];
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

// The buckets of TGI's *_duration histograms, in seconds, so that its dashboards fit.
inline std::vector<double> duration_bounds() {
  return Histogram::geometric(0.00015, 1.5, 35);
}

}  // namespace tgi
