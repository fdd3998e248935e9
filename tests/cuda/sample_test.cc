// The sample kernels on an emulated GPU against engine/sample: many random rows and settings.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "tests/catch.h"
#include "tests/cuda/sample_case.h"

namespace tgi {
namespace {

// Sums of several uniform numbers look like the logits of a model; rounded, they tie.
Floats random_logits(Random& random, int32_t vocab_size, float spread, bool ties) {
  Floats out(static_cast<size_t>(vocab_size));
  for (float& x : out) {
    for (int i = 0; i < 4; ++i) x += spread * random.value();
    x += static_cast<float>(random.integer(-1000, 1000)) * 1e-5F;
    if (ties) x = std::round(x * 4.0F) / 4.0F;
  }
  return out;
}

std::vector<int32_t> random_ids(Random& random, int32_t vocab_size, int32_t most) {
  std::set<int32_t> ids;
  for (int32_t count = random.integer(1, most); count > 0; --count) {
    ids.insert(random.integer(0, vocab_size - 1));
  }
  std::vector<int32_t> out(ids.begin(), ids.end());
  random.shuffle(out);
  return out;
}

void set_filters(Random& random, SamplingParams& params) {
  if (random.integer(0, 2) == 0) params.top_k = random.integer(1, 200);
  if (random.integer(0, 9) == 0) params.top_k = random.integer(1, 5000);
  if (random.integer(0, 2) == 0) params.top_p = 0.05F + 0.94F * std::abs(random.value());
  if (random.integer(0, 9) == 0) params.top_p = 0.999F;
  if (random.integer(0, 3) == 0) params.typical_p = 0.05F + 0.94F * std::abs(random.value());
  if (random.integer(0, 2) == 0) params.min_p = 0.5F * std::abs(random.value());
}

SampleCase random_case(Random& random, int32_t vocab_size, int32_t position) {
  SampleCase out;
  const float spread = std::abs(random.value()) * 5.0F;
  out.logits = random_logits(random, vocab_size, spread, random.integer(0, 3) == 0);
  out.previous_id = random.integer(0, vocab_size - 1);
  out.position = position;
  const int32_t kind = random.integer(0, 19);
  if (kind == 0) out.is_padding = true;
  if (kind == 1) {
    out.target_id = random.integer(0, vocab_size - 1);
    out.params.top_n_tokens = random.integer(0, 5);
  }
  if (kind <= 1) return out;
  SamplingParams& params = out.params;
  params.do_sample = kind > 5;
  params.seed = static_cast<uint64_t>(random.integer(0, 1 << 30)) << 20;
  params.sequence_index = static_cast<uint32_t>(random.integer(0, 3));
  if (random.integer(0, 2) > 0) params.temperature = 0.4F + std::abs(random.value()) * 2.0F;
  if (random.integer(0, 2) > 0) set_filters(random, params);
  params.watermark = random.integer(0, 4) == 0;
  if (random.integer(0, 3) == 0) {
    params.repetition_penalty = 1.0F + random.value() * 0.5F;
    params.frequency_penalty = random.value();
    params.presence_penalty = random.value();
    for (const int32_t id : random_ids(random, vocab_size, 60)) {
      out.history.push_back({.id = id, .output_count = random.integer(0, 4)});
    }
  }
  if (random.integer(0, 3) == 0) {
    for (const int32_t id : random_ids(random, vocab_size, 20)) {
      const float bias = random.integer(0, 4) == 0 ? -100.0F : 6.0F * random.value();
      params.logit_bias.push_back({.id = id, .bias = bias});
    }
  }
  if (random.integer(0, 3) == 0) {
    out.allowed.resize(static_cast<size_t>((vocab_size + 31) / 32));
    const bool few = random.integer(0, 1) == 0;
    for (uint32_t& word : out.allowed) {
      for (int bit = 0; bit < 32; ++bit) {
        word |= random.integer(0, few ? 60 : 3) == 0 ? 1U << bit : 0U;
      }
    }
    out.allowed[0] |= 1;  // never empty
  }
  if (random.integer(0, 2) == 0) params.top_n_tokens = random.integer(1, 80);
  return out;
}

// Returns how many ids were near ties.
int check_all(const std::vector<SampleCase>& cases, const std::vector<SampleOutcome>& got) {
  int near = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const SamplingParams& params = cases[i].params;
    INFO("row " << i << " vocab " << cases[i].logits.size() << " sampled " << params.do_sample
                << " k " << params.top_k << " p " << params.top_p << " typical " << params.typical_p
                << " min-p " << params.min_p << " temperature " << params.temperature << " biases "
                << params.logit_bias.size() << " mask " << cases[i].allowed.size() << " tops "
                << params.top_n_tokens);
    near += check_row(cases[i], got[i]) ? 0 : 1;
  }
  return near;
}

bool same_row(const cuda::SampledRow& a, const cuda::SampledRow& b) {
  const auto count = static_cast<size_t>(a.num_top);
  return a.id == b.id && std::memcmp(&a.logprob, &b.logprob, sizeof(float)) == 0 &&
         a.num_top == b.num_top && std::memcmp(a.top_ids, b.top_ids, count * 4) == 0 &&
         std::memcmp(a.top_logprobs, b.top_logprobs, count * 4) == 0;
}

}  // namespace

TEST_CASE("sample kernels draw what the sampler of the CPU draws") {
  Random random(91);
  int near = 0;
  int num_rows = 0;
  for (int round = 0; round < 40; ++round) {
    const int32_t vocab_size =
        round % 8 == 7 ? random.integer(4000, 13000) : random.integer(1, 3000);
    std::vector<SampleCase> cases;
    for (int32_t i = random.integer(1, round % 8 == 7 ? 8 : 16); i > 0; --i) {
      cases.push_back(random_case(random, vocab_size, round * 100 + i));
    }
    num_rows += static_cast<int>(cases.size());
    INFO("round " << round);
    near += round % 3 == 0 ? check_all(cases, run_kernels(cases, vocab_size))
                           : check_all(cases, run_kernels(cases));
  }
  CHECK(near * 200 <= num_rows);
}

TEST_CASE("a row gives the same bits alone, among others, and wherever it lies") {
  Random random(17);
  constexpr int32_t kVocab = 9001;
  std::vector<SampleCase> cases;
  for (int32_t i = 0; i < 12; ++i) cases.push_back(random_case(random, kVocab, i));
  const auto together = run_kernels(cases);
  const auto elsewhere = run_kernels(cases, kVocab + 2);
  for (size_t i = 0; i < cases.size(); ++i) {
    INFO("row " << i);
    const auto alone = run_kernels({cases[i]});
    CHECK(same_row(alone[0].row, together[i].row));
    CHECK(same_row(elsewhere[i].row, together[i].row));
    CHECK(alone[0].last_token == together[i].last_token);
    CHECK(alone[0].token_counts == together[i].token_counts);
  }
}

TEST_CASE("the whole of a large vocabulary takes part in a draw") {
  Random random(5);
  constexpr int32_t kVocab = 151'936;
  std::vector<SampleCase> cases;
  for (int32_t i = 0; i < 6; ++i) {
    cases.push_back({.params = {.do_sample = true, .seed = static_cast<uint64_t>(i)},
                     .logits = random_logits(random, kVocab, i < 3 ? 2.0F : 0.1F, false),
                     .position = i});
  }
  cases[1].params.top_k = 50;
  cases[1].params.top_p = 0.9F;
  cases[1].params.top_n_tokens = 5;
  cases[2].params.top_p = 0.95F;
  // More than the lists hold.
  cases[4].params.top_p = 0.9F;
  cases[4].params.top_n_tokens = 20;
  cases[5].params.typical_p = 0.8F;
  cases[5].params.min_p = 0.9F;
  CHECK(check_all(cases, run_kernels(cases)) == 0);
}

}  // namespace tgi
