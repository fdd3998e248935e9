#include "base/histogram.h"

#include <cmath>
#include <limits>

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

}  // namespace tgi
