// The rules by which tensors are merged, on numbers that can be followed by hand.
#include "engine/lora/merge_rules.h"

#include <cmath>

#include "tests/catch.h"

namespace tgi {
namespace {

using Values = std::vector<float>;

MergeTerm term(Values values, float weight = 1.0F, uint64_t seed = 0) {
  return {.values = std::move(values), .weight = weight, .seed = seed};
}

TEST_CASE("names of strategies and of signs are those of the registry") {
  CHECK(merge_strategy_from_name("linear") == MergeStrategy::kLinear);
  CHECK(merge_strategy_from_name("ties") == MergeStrategy::kTies);
  CHECK(merge_strategy_from_name("dare_linear") == MergeStrategy::kDareLinear);
  CHECK(merge_strategy_from_name("dare_ties") == MergeStrategy::kDareTies);
  CHECK_FALSE(merge_strategy_from_name("average"));
  CHECK(majority_sign_from_name("total") == MajoritySign::kTotal);
  CHECK(majority_sign_from_name("frequency") == MajoritySign::kFrequency);
  CHECK_FALSE(majority_sign_from_name(""));
}

TEST_CASE("linear is the weighted sum, whatever the density") {
  const MergeRule rule{.strategy = MergeStrategy::kLinear, .density = 0.1};
  CHECK(merge_terms({term({1, -2, 4}, 0.5F), term({3, 1, 0}, -1.0F)}, rule) ==
        Values{-2.5F, -2, 2});
}

TEST_CASE("ties keeps the largest of each tensor, the first ones of equals") {
  const MergeRule rule{.strategy = MergeStrategy::kTies, .density = 0.5};
  CHECK(merge_terms({term({1, -5, 3, -3})}, rule) == Values{0, -5, 3, 0});
  CHECK(merge_terms({term({2, 2, 2, 2})}, rule) == Values{2, 2, 0, 0});
  CHECK(merge_terms({term({0, -0.0F, 0, 1})}, rule) == Values{0, 0, 0, 1});
  // A share of less than one of them is none; not all of the last.
  CHECK(merge_terms({term({7, 8, 9})}, {.strategy = MergeStrategy::kTies, .density = 0.3}) ==
        Values{0, 0, 0});
  CHECK(merge_terms({term({7, 8, 9})}, {.strategy = MergeStrategy::kTies, .density = 0.99}) ==
        Values{0, 8, 9});
  // Sizes that differ in their last bits only.
  const float more = std::nextafter(1.0F, 2.0F);
  CHECK(merge_terms({term({1, -more, 1, more})}, rule) == Values{0, -more, 0, more});
}

TEST_CASE("the sign that prevails is that of the sum, or that of most, before weights") {
  const std::vector<MergeTerm> terms = {term({5, 1}, 0.1F), term({-2, -1}, 10), term({-2, 0})};
  const MergeRule total{.strategy = MergeStrategy::kTies};
  CHECK(merge_terms(terms, total) == Values{0.5F, 0.1F});
  const MergeRule frequency{.strategy = MergeStrategy::kTies,
                            .majority_sign = MajoritySign::kFrequency};
  CHECK(merge_terms(terms, frequency) == Values{-11, 0.1F});
}

TEST_CASE("dare keeps a random share, the same for the same seed, and scales it up") {
  const size_t count = 40000;
  const Values ones(count, 1.0F);
  const MergeRule rule{.strategy = MergeStrategy::kDareLinear, .density = 0.25};
  const Values first = merge_terms({term(ones, 1, 11)}, rule);
  size_t num_kept = 0;
  for (const float value : first) {
    REQUIRE((value == 0.0F || value == 4.0F));
    if (value != 0.0F) ++num_kept;
  }
  CHECK(static_cast<double>(num_kept) == Approx(10000).margin(400));
  CHECK(merge_terms({term(ones, 1, 11)}, rule) == first);
  CHECK(merge_terms({term(ones, 1, 12)}, rule) != first);
  // What is drawn for one tensor does not depend on those beside it.
  const Values both = merge_terms({term(ones, 1, 11), term(Values(count, 0.0F), 1, 12)}, rule);
  CHECK(both == first);

  MergeRule plain = rule;
  plain.rescales = false;
  Values unscaled = first;
  for (float& value : unscaled) value /= 4;
  CHECK(merge_terms({term(ones, 1, 11)}, plain) == unscaled);

  const MergeRule ties{.strategy = MergeStrategy::kDareTies, .density = 0.25};
  CHECK(merge_terms({term(ones, 1, 11)}, ties) == first);
  const MergeRule whole{.strategy = MergeStrategy::kDareLinear, .density = 1.0};
  CHECK(merge_terms({term(ones, 2)}, whole) == Values(count, 2.0F));
}

}  // namespace
}  // namespace tgi
