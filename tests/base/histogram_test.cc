#include "base/histogram.h"

#include <cmath>
#include <ctime>
#include <limits>
#include <thread>

#include "base/shared_histogram.h"

#include "tests/catch.h"

namespace tgi {

TEST_CASE("a histogram counts each value in the first bucket that reaches it") {
  Histogram histogram({1, 2, 4});
  for (const double value : {0.5, 1.0, 1.5, 2.0, 2.0, 4.0, 4.1, 100.0}) histogram.observe(value);
  CHECK(histogram.counts() == std::vector<int64_t>{2, 3, 1, 2});
  CHECK(histogram.sum() == Approx(115.1));
}

TEST_CASE("a histogram keeps what lies beyond its bounds") {
  Histogram histogram({1, 2});
  histogram.observe(-5);
  histogram.observe(std::numeric_limits<double>::infinity());
  CHECK(histogram.counts() == std::vector<int64_t>{1, 0, 1});
  Histogram without({});
  without.observe(3);
  CHECK(without.counts() == std::vector<int64_t>{1});
  CHECK(without.sum() == 3);
}

TEST_CASE("geometric bounds grow by their factor") {
  CHECK(Histogram::geometric(0.5, 2, 4) == std::vector<double>{0.5, 1, 2, 4});
  CHECK(Histogram::geometric(1, 10, 0).empty());
  const Histogram empty(Histogram::geometric(0.00015, 1.5, 35));
  CHECK(empty.counts() == std::vector<int64_t>(36, 0));
  CHECK(empty.bounds().back() == Approx(0.00015 * std::pow(1.5, 34)));
}

TEST_CASE("linear bounds end with the one that is given") {
  CHECK(Histogram::linear(8, 4) == std::vector<double>{2, 4, 6, 8});
  CHECK(Histogram::linear(8, 0).empty());
}

TEST_CASE("a shared histogram counts as one of a single owner does") {
  const std::vector<double> bounds = Histogram::linear(20, 20);  // more than a line of counts
  SharedHistogram shared(bounds);
  Histogram own(bounds);
  for (int i = -1; i < 50; ++i) {
    shared.observe(i / 2.0);
    own.observe(i / 2.0);
  }
  CHECK(shared.snapshot().bounds() == own.bounds());
  CHECK(shared.snapshot().counts() == own.counts());
  CHECK(shared.snapshot().sum() == Approx(own.sum()));
}

TEST_CASE("a shared histogram loses nothing that many threads observe at once") {
  constexpr int kThreads = 20;  // some share a shard
  constexpr int kCount = 2000;
  SharedHistogram shared({1, 2});
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&shared, i] {
        for (int j = 0; j < kCount; ++j) shared.observe(i % 4);
      });
    }
  }
  const Histogram seen = shared.snapshot();
  CHECK(seen.counts() == std::vector<int64_t>{10 * kCount, 5 * kCount, 5 * kCount});
  CHECK(seen.sum() == 5 * (0 + 1 + 2 + 3) * kCount);
}

TEST_CASE("an observation of a shared histogram costs well below a microsecond") {
  SharedHistogram histogram({0.001, 0.01, 0.1, 1});
  constexpr int kCount = 1'000'000;
  const auto cpu_ns = [] {  // of this thread: what others do to the machine doesn't count
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
  };
  const double begin = cpu_ns();
  for (int i = 0; i < kCount; ++i) histogram.observe(i * 1e-6);
  const double each_ns = (cpu_ns() - begin) / kCount;
  INFO(each_ns << " ns each");
  CHECK(each_ns < 500);  // 20 in a release; far above it for sanitizers
  CHECK(histogram.snapshot().counts().size() == 5);
}

}  // namespace tgi
