// What the sampler draws: what each filter leaves, its draws against the exact distribution, and
// what a draw depends on.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "engine/sample/philox.h"
#include "engine/sample/sampler.h"
#include "tests/catch.h"
#include "tests/sample/sampler_case.h"

namespace tgi {
namespace {

using namespace sampler_tests;

}  // namespace

TEST_CASE("a mask leaves only what it allows") {
  const uint32_t allowed[] = {0b1010U, 0b1U};  // 1, 3, 32
  Floats logits(40, 0.0F);
  logits[0] = 50.0F;
  logits[3] = 1.0F;
  CHECK(sample(logits, {}, {.allowed = allowed}).token.id == 3);
  CHECK(survivors(logits, {}, {.allowed = allowed}) == Ids{1, 3, 32});
}

TEST_CASE("top-k keeps what ties with the k-th") {
  const Floats logits = {1.0F, 3.0F, 2.0F, 2.0F, 0.0F};
  CHECK(survivors(logits, {.top_k = 1}) == Ids{1});
  CHECK(survivors(logits, {.top_k = 2}) == Ids{1, 2, 3});
  CHECK(survivors(logits, {.top_k = 3}) == Ids{1, 2, 3});
  CHECK(survivors(logits, {.top_k = 4}) == Ids{0, 1, 2, 3});
  CHECK(survivors(logits, {.top_k = 100}) == Ids{0, 1, 2, 3, 4});
}

TEST_CASE("top-p keeps the smallest set that reaches the mass, at least one") {
  const Floats logits = logs({0.1, 0.4, 0.2, 0.3});
  CHECK(survivors(logits, {.top_p = 0.01F}) == Ids{1});
  CHECK(survivors(logits, {.top_p = 0.39F}) == Ids{1});
  CHECK(survivors(logits, {.top_p = 0.41F}) == Ids{1, 3});
  CHECK(survivors(logits, {.top_p = 0.69F}) == Ids{1, 3});
  CHECK(survivors(logits, {.top_p = 0.71F}) == Ids{1, 2, 3});
  CHECK(survivors(logits, {.top_p = 0.95F}) == Ids{0, 1, 2, 3});
  // Equal ones: the lower ids.
  CHECK(survivors({0.0F, 0.0F, 0.0F, 0.0F}, {.top_p = 0.45F}) == Ids{0, 1});
}

TEST_CASE("typical-p keeps what is closest to the expected surprise") {
  const Floats logits = logs({0.1, 0.45, 0.15, 0.3});
  // Distances from the entropy 1.236: 0.3 -> 0.03, 0.45 -> 0.44, 0.15 -> 0.66, 0.1 -> 1.07
  CHECK(survivors(logits, {.typical_p = 0.2F}) == Ids{3});
  CHECK(survivors(logits, {.typical_p = 0.5F}) == Ids{1, 3});
  CHECK(survivors(logits, {.typical_p = 0.8F}) == Ids{1, 2, 3});
  CHECK(survivors(logits, {.typical_p = 0.95F}) == Ids{0, 1, 2, 3});
  // Ties with the threshold stay.
  CHECK(survivors({0.0F, 0.0F, 0.0F}, {.typical_p = 0.1F}) == Ids{0, 1, 2});
}

TEST_CASE("min-p compares with the likeliest") {
  const Floats logits = logs({0.5, 0.3, 0.15, 0.05});
  CHECK(survivors(logits, {.min_p = 0.59F}) == Ids{0, 1});
  CHECK(survivors(logits, {.min_p = 0.61F}) == Ids{0});
  CHECK(survivors(logits, {.min_p = 0.29F}) == Ids{0, 1, 2});
  CHECK(survivors(logits, {.min_p = 1.0F}) == Ids{0});
}

TEST_CASE("filters follow each other and the temperature comes first") {
  const Floats logits = logs({0.4, 0.3, 0.2, 0.1});
  // Among the top two, the first has 0.571 of what is left.
  CHECK(survivors(logits, {.top_k = 2, .top_p = 0.56F}) == Ids{0});
  CHECK(survivors(logits, {.top_k = 2, .top_p = 0.58F}) == Ids{0, 1});
  // Temperature 1/2 squares: 0.533, 0.3, 0.133, 0.033.
  CHECK(survivors(logits, {.temperature = 0.5F, .top_p = 0.53F}) == Ids{0});
  CHECK(survivors(logits, {.temperature = 0.5F, .top_p = 0.54F}) == Ids{0, 1});
  // Typical-p may throw out the likeliest; min-p then compares with the likeliest left. Entropy
  // 0.965: 0.3 (surprise 1.204) is closest.
  const Floats peaked = logs({0.6, 0.3, 0.06, 0.04});
  CHECK(survivors(peaked, {.typical_p = 0.2F, .min_p = 0.9F}) == Ids{1});
}

TEST_CASE("philox gives the published test vectors") {
  using Block = std::array<uint32_t, 4>;
  CHECK(philox4x32_10({0, 0, 0, 0}, {0, 0}) ==
        Block{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8});
  const uint32_t ones = 0xFFFFFFFF;
  CHECK(philox4x32_10({ones, ones, ones, ones}, {ones, ones}) ==
        Block{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD});
  CHECK(philox4x32_10({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, {0xA4093822, 0x299F31D0}) ==
        Block{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1});
}

TEST_CASE("draws follow the distribution") {
  // Pearson's statistic with 19 degrees of freedom passes 60 once in 200,000 tries; the seeds are
  // fixed, so this is decided once.
  Random random(3);
  Floats logits = random.values(20);
  for (float& x : logits) x *= 1.5F;
  constexpr int kDraws = 20000;
  for (const MathCase& c : math_cases()) {
    for (const SamplingParams& params :
         {SamplingParams{.do_sample = true, .seed = 7},
          SamplingParams{.do_sample = true, .temperature = 2.0F, .seed = 8},
          SamplingParams{.do_sample = true, .top_k = 20, .seed = 9},
          SamplingParams{.do_sample = true, .seed = 0xFFFFFFFFFFFF, .sequence_index = 3}}) {
      INFO(c.name << " seed " << params.seed);
      const std::vector<double> p = softmax(logits, static_cast<double>(params.temperature));
      std::vector<int> counts(logits.size());
      for (int position = 0; position < kDraws; ++position) {
        const SampledToken sampled = sample(logits, params, {.position = position}, c.math);
        ++counts[static_cast<size_t>(sampled.token.id)];
      }
      double statistic = 0.0;
      for (size_t i = 0; i < p.size(); ++i) {
        const double expected = p[i] * kDraws;
        statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
      }
      CHECK(statistic < 60.0);
      CHECK(statistic > 3.0);  // suspiciously even would be wrong too
    }
  }
}

TEST_CASE("a draw depends on seed, sequence and position, and on nothing else") {
  const Floats logits(5000, 0.0F);
  const auto draws = [&](uint64_t seed, uint32_t sequence, const SamplingParams& base = {}) {
    SamplingParams params = base;
    params.do_sample = true;
    params.seed = seed;
    params.sequence_index = sequence;
    std::vector<int32_t> ids;
    for (int position = 0; position < 20; ++position) {
      ids.push_back(sample(logits, params, {.position = position}).token.id);
    }
    return ids;
  };
  const std::vector<int32_t> first = draws(1, 0);
  CHECK(draws(1, 0) == first);
  CHECK(std::set<int32_t>(first.begin(), first.end()).size() > 15);
  CHECK(draws(2, 0) != first);
  CHECK(draws(1, 1) != first);
  CHECK(draws(uint64_t{1} << 32, 0) != draws(0, 0));
  // A filter that keeps all does not change the draw, though it takes another way.
  CHECK(draws(1, 0, {.top_k = 5000}) == first);
  CHECK(draws(1, 0, {.min_p = 0.5F}) == first);
}

TEST_CASE("a watermark shows in the share of green tokens") {
  Random random(8);
  const auto z_score = [&](bool watermark) {
    constexpr int kTokens = 400;
    int32_t previous = 0;
    int num_green = 0;
    for (int position = 0; position < kTokens; ++position) {
      const Floats logits = random.values(200);
      const SamplingParams params{.do_sample = true, .watermark = watermark, .seed = 5};
      const int32_t id =
          sample(logits, params, {.previous_id = previous, .position = position}).token.id;
      num_green += is_green(previous, id) ? 1 : 0;
      previous = id;
    }
    return (num_green - kWatermarkGamma * kTokens) /
           std::sqrt(kTokens * kWatermarkGamma * (1.0 - kWatermarkGamma));
  };
  CHECK(z_score(true) > 10.0);  // expected share e^2 / (1 + e^2) = 0.88: about 15
  CHECK(std::abs(z_score(false)) < 4.0);
  int num_green = 0;
  for (int32_t id = 0; id < 10000; ++id) num_green += is_green(17, id) ? 1 : 0;
  CHECK(std::abs(num_green - 5000) < 250);
}

TEST_CASE("ids that are drawn by the random bits of others draw what those would") {
  Floats logits(300);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = std::sin(static_cast<float>(i));
  // Some of them, in another order.
  std::vector<int32_t> draw_ids;
  Floats some(logits.size(), -std::numeric_limits<float>::infinity());
  Floats reordered;
  for (int32_t i = 0; i < 150; ++i) {
    const int32_t id = i * 77 % 300;
    draw_ids.push_back(id);
    reordered.push_back(logits[static_cast<size_t>(id)]);
    some[static_cast<size_t>(id)] = reordered.back();
  }
  std::set<int32_t> drawn;
  for (SamplingParams params : {SamplingParams{}, {.top_p = 0.9F}, {.temperature = 0.5F}}) {
    params.do_sample = true;
    for (int position = 0; position < 50; ++position) {
      const int32_t id = sample(some, params, {.position = position}).token.id;
      const int32_t place =
          sample(reordered, params, {.position = position, .draw_ids = draw_ids.data()}).token.id;
      CHECK(draw_ids[static_cast<size_t>(place)] == id);
      drawn.insert(id);
    }
  }
  CHECK(drawn.size() > 20);
}

TEST_CASE("a biased distribution is drawn from as it is") {
  const Floats logits = logs({0.25, 0.25, 0.5});
  const SamplingParams params{.logit_bias = {{.id = 0, .bias = std::log(4.0F)}}};
  // 1 : 0.25 : 0.5
  std::map<int32_t, int> counts;
  SamplingParams drawn = params;
  drawn.do_sample = true;
  constexpr int kDraws = 20000;
  for (int32_t position = 0; position < kDraws; ++position) {
    ++counts[sample(logits, drawn, {.position = position}).token.id];
  }
  CHECK(counts[0] / double{kDraws} == Approx(1 / 1.75).margin(0.015));
  CHECK(counts[1] / double{kDraws} == Approx(0.25 / 1.75).margin(0.015));
  CHECK(counts[2] / double{kDraws} == Approx(0.5 / 1.75).margin(0.015));
}

}  // namespace tgi
