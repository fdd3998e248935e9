// A histogram of durations for the per-token path: any thread observes, in some tens of
// nanoseconds, without a lock and without a cache line that all threads write.
// (prometheus::Histogram takes a mutex per observation and walks its bounds.)
#pragma once

#include <prometheus/client_metric.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.h"

namespace tgi::http {

class DurationHistogram {
 public:
  // REQUIRES: `bounds` (seconds) rise; at most kMaxBounds.
  explicit DurationHistogram(std::vector<double> bounds) : bounds_(std::move(bounds)) {
    TGI_CHECK(bounds_.size() <= kMaxBounds && std::is_sorted(bounds_.begin(), bounds_.end()));
  }

  void observe(double seconds) noexcept {
    seconds = seconds > 0 ? std::min(seconds, kMaxSeconds) : 0;  // NaN too becomes 0
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), seconds) - bounds_.begin();
    Shard& shard = shards_[shard_of_this_thread() % kNumShards];
    shard.counts[static_cast<size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
    shard.sum_ns.fetch_add(std::llround(seconds * 1e9), std::memory_order_relaxed);
  }

  // What other threads observe meanwhile may be in the sum and not yet in a bucket, or the other
  // way round; the buckets and the count always agree.
  prometheus::ClientMetric collect() const {
    prometheus::ClientMetric out;
    int64_t sum_ns = 0;
    for (size_t i = 0; i <= bounds_.size(); ++i) {
      for (const Shard& shard : shards_) {
        out.histogram.sample_count += shard.counts[i].load(std::memory_order_relaxed);
      }
      const bool last = i == bounds_.size();
      out.histogram.bucket.push_back(
          {.cumulative_count = out.histogram.sample_count,
           .upper_bound = last ? std::numeric_limits<double>::infinity() : bounds_[i]});
    }
    for (const Shard& shard : shards_) sum_ns += shard.sum_ns.load(std::memory_order_relaxed);
    out.histogram.sample_sum = static_cast<double>(sum_ns) / 1e9;
    return out;
  }

 private:
  static constexpr size_t kNumShards = 16;
  static constexpr size_t kMaxBounds = 47;  // with the last bucket and the sum whole cache lines
  static constexpr double kMaxSeconds = 1e6;

  struct alignas(64) Shard {
    std::array<std::atomic<uint64_t>, kMaxBounds + 1> counts{};
    std::atomic<int64_t> sum_ns{0};
  };

  static size_t shard_of_this_thread() noexcept {
    static std::atomic<size_t> next{0};
    thread_local const size_t shard = next.fetch_add(1, std::memory_order_relaxed);
    return shard;
  }

  const std::vector<double> bounds_;
  std::array<Shard, kNumShards> shards_;
};

}  // namespace tgi::http
