// What the sampler does with logits before it draws, and what it reports of them: rule by rule on
// small vectors, with the plain passes and with the vector kernels. Draws: draw_test.cc.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/sample/sampler.h"
#include "tests/catch.h"
#include "tests/sample/sampler_case.h"

namespace tgi {
namespace {

using namespace sampler_tests;

}  // namespace

TEST_CASE("greedy takes the highest, the lowest id on ties") {
  for (const MathCase& c : math_cases()) {
    INFO(c.name);
    CHECK(sample({1.0F, 5.0F, 2.0F, 5.0F}, {}, {}, c.math).token.id == 1);
    Floats many(1000, -3.0F);
    many[777] = many[900] = 4.0F;
    CHECK(sample(many, {}, {}, c.math).token.id == 777);
  }
}

TEST_CASE("log-probabilities are those of the raw logits, whatever was done to pick") {
  const Floats logits = {0.5F, 2.0F, -1.0F, 0.0F};
  const std::vector<double> p = softmax(logits);
  const SamplingParams params{.do_sample = true,
                              .temperature = 0.3F,
                              .top_k = 3,
                              .top_p = 0.9F,
                              .repetition_penalty = 2.0F,
                              .top_n_tokens = 4};
  for (const MathCase& c : math_cases()) {
    INFO(c.name);
    const SampledToken sampled = sample(logits, params, {.history = {{1, 1}}}, c.math);
    CHECK(sampled.token.logprob ==
          Approx(std::log(p[static_cast<size_t>(sampled.token.id)])).margin(1e-6));
    CHECK(top_ids(sampled) == std::vector<int32_t>{1, 0, 3, 2});
    CHECK(sampled.top_tokens[3].logprob == Approx(std::log(p[2])).margin(1e-6));
    SamplerScratch scratch(4);
    std::vector<TokenScore> top = {{.id = 9}};  // of an earlier row
    const auto score = [&](const ScoreRow& asked) {
      return score_row(logits.data(), 4, asked, c.math, scratch, top);
    };
    CHECK(score({.target_id = 3}) == Approx(std::log(p[3])).margin(1e-6));
    CHECK(top.empty());
    CHECK(score({.target_id = 3, .num_top = 2}) == Approx(std::log(p[3])).margin(1e-6));
    REQUIRE(top.size() == 2);
    CHECK(top[0].id == 1);
    CHECK(top[1].id == 0);
    CHECK(top[1].logprob == score({.target_id = 0}));  // the same bits, so that they compare
  }
}

TEST_CASE("alternatives include all that tie with the last one") {
  const Floats logits = {-1.0F, -3.0F, -4.0F, -2.0F, -3.0F};
  CHECK(top_ids(sample(logits, {.top_n_tokens = 3})) == std::vector<int32_t>{0, 3, 1, 4});
  CHECK(top_ids(sample(logits, {.top_n_tokens = 2})) == std::vector<int32_t>{0, 3});
  CHECK(top_ids(sample(logits, {.top_n_tokens = 0})).empty());
  CHECK(top_ids(sample(logits, {.top_n_tokens = 99})).size() == 5);
}

TEST_CASE("alternatives never include what has no probability") {
  const Floats logits = {-kInfinity, 1.0F, -kInfinity, 0.0F};
  CHECK(top_ids(sample(logits, {.top_n_tokens = 4})) == std::vector<int32_t>{1, 3});
}

TEST_CASE("the repetition penalty divides positive and multiplies negative logits, once per id") {
  // 3 / 2 < 2; -1 * 2 < -1.5
  CHECK(sample({3.0F, 2.0F}, {.repetition_penalty = 2.0F}, {.history = {{0, 5}}}).token.id == 1);
  CHECK(sample({-1.0F, -1.5F}, {.repetition_penalty = 2.0F}, {.history = {{0, 0}}}).token.id == 1);
  CHECK(sample({3.0F, 1.4F}, {.repetition_penalty = 2.0F}, {.history = {{0, 5}}}).token.id == 0);
  // Below 1 it encourages.
  CHECK(sample({1.0F, 1.5F}, {.repetition_penalty = 0.5F}, {.history = {{0, 1}}}).token.id == 0);
}

TEST_CASE(
    "frequency counts output tokens, presence looks whether there are any, prompts are free") {
  const Extra three_times{.history = {{0, 3}}};
  const Extra prompt_only{.history = {{0, 0}}};
  CHECK(sample({2.0F, 1.0F}, {.frequency_penalty = 0.4F}, three_times).token.id == 1);
  CHECK(sample({2.0F, 1.0F}, {.frequency_penalty = 0.3F}, three_times).token.id == 0);
  CHECK(sample({2.0F, 1.0F}, {.frequency_penalty = 0.4F}, prompt_only).token.id == 0);
  CHECK(sample({2.0F, 1.0F}, {.presence_penalty = 1.1F}, three_times).token.id == 1);
  CHECK(sample({2.0F, 1.0F}, {.presence_penalty = 0.9F}, three_times).token.id == 0);
  CHECK(sample({2.0F, 1.0F}, {.presence_penalty = 1.1F}, prompt_only).token.id == 0);
}

std::vector<SamplingParams> all_ways_to_pick() {
  std::vector<SamplingParams> out;
  for (const bool do_sample : {false, true}) {
    out.push_back({.do_sample = do_sample, .top_n_tokens = 2});
    out.push_back({.do_sample = do_sample, .temperature = 0.01F, .top_k = 2, .top_p = 0.5F});
    out.push_back({.do_sample = do_sample, .typical_p = 0.5F, .min_p = 0.1F});
    out.push_back({.do_sample = do_sample,
                   .repetition_penalty = 1.5F,
                   .logit_bias = {{.id = 0, .bias = 3.0F}},
                   .watermark = true,
                   .top_n_tokens = 1});
  }
  return out;
}

TEST_CASE("logits that are not finite have no token and no log-probability") {
  const float nan = std::nanf("");
  // In every lane, in the tail, alone and beside others; of a long row at either end.
  std::vector<Floats> rows = {{nan},
                              {nan, nan},
                              {nan, 1.0F, nan, -40.0F},
                              {0.0F, kInfinity, 3.0F},
                              {-kInfinity},
                              {-kInfinity, -kInfinity, -kInfinity},
                              {nan, -kInfinity},
                              {kInfinity, nan},
                              Floats(100, kInfinity)};
  for (const size_t at : {0, 15, 16, 1023, 1024, 2999}) {
    for (const float bad : {nan, -nan, kInfinity}) {
      rows.emplace_back(3000, -1.0F);
      rows.back()[at] = bad;
    }
  }
  for (const MathCase& c : math_cases()) {
    for (const Floats& row : rows) {
      INFO(c.name << ", " << row.size() << " logits, the first is " << row[0]);
      for (const SamplingParams& params : all_ways_to_pick()) {
        const SampledToken sampled =
            sample(row, params, {.history = {{0, 1}}, .previous_id = 0}, c.math);
        CHECK(std::isnan(sampled.token.logprob));
        CHECK(sampled.token.id == 0);
        CHECK(sampled.top_tokens.empty());
      }
      const auto vocab_size = static_cast<int32_t>(row.size());
      SamplerScratch scratch(vocab_size);
      std::vector<TokenScore> top;
      CHECK(std::isnan(
          score_row(row.data(), vocab_size, {.target_id = 0, .num_top = 2}, c.math, scratch, top)));
      CHECK(top.empty());
    }
    // The id still keeps to the mask: the step after may have begun with it.
    const uint32_t allowed[] = {0b100U};
    CHECK(sample({nan, 1.0F, nan}, {}, {.allowed = allowed}, c.math).token.id == 2);
  }
}

TEST_CASE("tokens may be forbidden, and finite logits leave the range of floats on the way") {
  for (const MathCase& c : math_cases()) {
    INFO(c.name);
    for (const SamplingParams& params : all_ways_to_pick()) {
      Extra extra{.history = {{1, 1}}, .previous_id = 0};
      const SampledToken one = sample({-kInfinity, -kInfinity, -2.0F}, params, extra, c.math);
      CHECK(one.token.id == 2);
      CHECK(one.token.logprob == 0.0F);
      CHECK(sample({3e38F, 1.0F}, params, extra, c.math).token.id == 0);
      const float largest = std::numeric_limits<float>::max();
      CHECK(std::isfinite(sample({largest, -largest}, params, extra, c.math).token.logprob));
      const uint32_t none[] = {0U};
      extra.allowed = none;
      CHECK(sample({1.0F, 2.0F}, params, extra, c.math).token.id == 0);
    }
    const SamplingParams forced{.do_sample = true, .logit_bias = {{.id = 1, .bias = 3e38F}}};
    CHECK(sample({1.0F, 3e38F}, forced, {}, c.math).token.id == 1);
    const Floats row = {-kInfinity, 1.0F};
    SamplerScratch scratch(2);
    std::vector<TokenScore> top;
    CHECK(score_row(row.data(), 2, {.target_id = 0, .num_top = 2}, c.math, scratch, top) ==
          -kInfinity);
    REQUIRE(top.size() == 1);
    CHECK(top[0].id == 1);
    CHECK(score_row(row.data(), 2, {.target_id = 1}, c.math, scratch, top) == 0.0F);
  }
}

TEST_CASE("a bias of 100 forces and one of -100 bans, greedy and sampling") {
  const Floats logits = {0.5F, 2.0F, -1.0F, 1.9F};
  for (const MathCase& c : math_cases()) {
    INFO(c.name);
    CHECK(sample(logits, {.logit_bias = {{.id = 2, .bias = 100}}}, {}, c.math).token.id == 2);
    CHECK(sample(logits, {.logit_bias = {{.id = 1, .bias = -100}}}, {}, c.math).token.id == 3);
    // On ties the lowest id.
    CHECK(sample(logits, {.logit_bias = {{.id = 0, .bias = 1.5F}}}, {}, c.math).token.id == 0);
  }
  CHECK(survivors(logits, {.logit_bias = {{.id = 2, .bias = 100}}}) == Ids{2});
  CHECK(survivors(logits, {.logit_bias = {{.id = 1, .bias = -100}, {.id = 3, .bias = -100}}}) ==
        Ids{0, 2});
}

TEST_CASE("a bias comes after the penalties, before temperature and filters, and is not reported") {
  const Floats logits = {1.0F, 1.2F, 0.0F, 0.0F};
  const std::vector<double> p = softmax(logits);
  // The penalty takes 2 from token 1 and the bias gives it back: a bias multiplied or divided by
  // the repetition penalty would not.
  const SamplingParams both{.repetition_penalty = 2.0F,
                            .frequency_penalty = 1.0F,
                            .logit_bias = {{.id = 1, .bias = 1.45F}}};
  CHECK(sample(logits, both, {.history = {{1, 1}}}).token.id == 1);
  const SamplingParams filtered{
      .do_sample = true, .top_k = 1, .logit_bias = {{.id = 3, .bias = 1.3F}}, .top_n_tokens = 1};
  const SampledToken sampled = sample(logits, filtered);
  CHECK(sampled.token.id == 3);
  CHECK(sampled.token.logprob == Approx(std::log(p[3])).epsilon(1e-5));
  CHECK(top_ids(sampled) == std::vector<int32_t>{1});
}

}  // namespace tgi
