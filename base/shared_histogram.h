// A histogram that any thread observes, in some tens of nanoseconds, without a lock and without a
// cache line that all threads write: it is meant for the path of each token.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/histogram.h"

namespace tgi {

class SharedHistogram {
 public:
  // REQUIRES: `bounds` rise.
  explicit SharedHistogram(std::vector<double> bounds) : bounds_(std::move(bounds)) {
    TGI_CHECK(std::is_sorted(bounds_.begin(), bounds_.end()));
    for (Shard& shard : shards_) shard.lines = std::vector<Line>(num_lines());
  }

  void observe(double value) noexcept {
    static std::atomic<size_t> next{0};
    thread_local const size_t thread = next.fetch_add(1, std::memory_order_relaxed);
    Shard& shard = shards_[thread % kNumShards];
    shard.count_of(Histogram::bucket_of(bounds_, value)).fetch_add(1, std::memory_order_relaxed);
    shard.sum.fetch_add(value, std::memory_order_relaxed);
  }

  // What other threads observe meanwhile may be in the sum and not yet in a bucket, or the other
  // way round.
  Histogram snapshot() const {
    std::vector<int64_t> counts(bounds_.size() + 1, 0);
    double sum = 0;
    for (const Shard& shard : shards_) {
      for (size_t i = 0; i < counts.size(); ++i) {
        counts[i] += shard.count_of(i).load(std::memory_order_relaxed);
      }
      sum += shard.sum.load(std::memory_order_relaxed);
    }
    return Histogram(bounds_, std::move(counts), sum);
  }

 private:
  static constexpr size_t kNumShards = 16;
  static constexpr size_t kCountsPerLine = 8;

  struct alignas(64) Line {
    std::array<std::atomic<int64_t>, kCountsPerLine> counts{};
  };

  struct alignas(64) Shard {
    std::atomic<double> sum{0};
    std::vector<Line> lines;

    std::atomic<int64_t>& count_of(size_t bucket) {
      return lines[bucket / kCountsPerLine].counts[bucket % kCountsPerLine];
    }
    const std::atomic<int64_t>& count_of(size_t bucket) const {
      return lines[bucket / kCountsPerLine].counts[bucket % kCountsPerLine];
    }
  };

  size_t num_lines() const { return bounds_.size() / kCountsPerLine + 1; }

  const std::vector<double> bounds_;
  std::array<Shard, kNumShards> shards_;
};

}  // namespace tgi
