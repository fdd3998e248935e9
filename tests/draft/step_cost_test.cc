#include "engine/draft/step_cost.h"

#include <random>

#include "tests/catch.h"

namespace tgi {

TEST_CASE("what a row costs is learnt from steps of different sizes, noise or not") {
  std::mt19937 random(2);
  for (const double row_ms : {0.05, 1.0, 4.0}) {
    StepCost cost;
    for (int i = 0; i < 300; ++i) {
      const auto rows = static_cast<int32_t>(random() % 5 + 1);
      const double noise = 1.0 + 0.05 * (static_cast<double>(random() % 100) / 50.0 - 1.0);
      const double disturbed = i % 40 == 39 ? 20.0 : 1.0;
      cost.observe(rows, (10.0 + row_ms * rows) * noise * disturbed);
    }
    const double wanted = row_ms / (10.0 + row_ms);
    CHECK(cost.row_price(1, 1) > 0.6 * wanted - 0.02);
    CHECK(cost.row_price(1, 1) < 1.4 * wanted + 0.02);
    // The more a step gives, the more a row must.
    CHECK(cost.row_price(4, 3) >= cost.row_price(1, 1));
  }
}

TEST_CASE(
    "a row is thought to be cheap until it is known, and what was learnt is not forgotten at "
    "once") {
  StepCost cost;
  CHECK(cost.row_price(1, 1) < 0.2);
  for (int i = 0; i < 50; ++i) cost.observe(1, 5);
  CHECK(cost.row_price(1, 1) < 0.2);
  for (int i = 0; i < 20; ++i) cost.observe(i % 3 + 1, 5.0 * (i % 3 + 1));
  CHECK(cost.row_price(1, 1) > 0.7);
  for (int i = 0; i < 200; ++i) cost.observe(1, 5);
  CHECK(cost.row_price(1, 1) > 0.5);
}

TEST_CASE("a row costs no more than its share of a step, and no less than nothing") {
  StepCost cost;
  for (int i = 0; i < 60; ++i) cost.observe(i % 2 + 1, i % 2 == 0 ? 10 : 100);
  CHECK(cost.row_price(1, 1) <= 1.5);
  StepCost falling;
  for (int i = 0; i < 60; ++i) falling.observe(i % 2 + 1, i % 2 == 0 ? 10 : 5);
  CHECK(falling.row_price(1, 1) >= 0);
}

TEST_CASE("time beside a step costs what as much time in it does") {
  StepCost cost;
  CHECK(cost.price_of(5, 1, 1) == 0);  // nothing is known
  for (int i = 0; i < 200; ++i) cost.observe(1 + i % 4, 10.0 + 0.5 * (i % 4));
  CHECK(cost.price_of(0.5, 4, 4) == Approx(cost.row_price(4, 4)).epsilon(0.1));
  CHECK(cost.price_of(10, 1, 1) == Approx(1).epsilon(0.1));
}

}  // namespace tgi
