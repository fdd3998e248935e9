// For the tests of the sampler: one row sampled, on every instruction set, and what many draws
// bring up.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/kernels/kernel_table.h"
#include "engine/sample/sampler.h"
#include "tests/conformance/harness.h"

namespace tgi::sampler_tests {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct MathCase {
  std::string name;
  const SamplerMath& math;
};

inline std::vector<MathCase> math_cases() {
  std::vector<MathCase> out = {{"plain", plain_sampler_math()}};
  for (const std::string_view isa : available_isas()) {
    out.push_back({std::string(isa), find_kernels(isa).sampler_math});
  }
  return out;
}

struct Extra {
  std::vector<TokenCount> history = {};
  int32_t previous_id = -1;
  int32_t position = 0;
  const uint32_t* allowed = nullptr;
  const int32_t* draw_ids = nullptr;
};

inline SampledToken sample(const Floats& logits,
                           const SamplingParams& params,
                           const Extra& extra = {},
                           const SamplerMath& math = plain_sampler_math()) {
  const auto vocab_size = static_cast<int32_t>(logits.size());
  SamplerScratch scratch(vocab_size);
  SampledToken out;
  sample_row({.logits = logits.data(),
              .vocab_size = vocab_size,
              .params = &params,
              .history = extra.history,
              .previous_id = extra.previous_id,
              .position = extra.position,
              .allowed = extra.allowed,
              .draw_ids = extra.draw_ids},
             math, scratch, out);
  return out;
}

using Ids = std::set<int32_t>;

// What 3000 draws bring up, which is all that the filters leave unless it is very unlikely.
inline Ids survivors(const Floats& logits, SamplingParams params, Extra extra = {}) {
  params.do_sample = true;
  Ids ids;
  for (extra.position = 0; extra.position < 3000; ++extra.position) {
    ids.insert(sample(logits, params, extra).token.id);
  }
  return ids;
}

inline Floats logs(const std::vector<double>& probabilities) {
  Floats out;
  for (const double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

inline std::vector<double> softmax(const Floats& logits, double temperature = 1.0) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> out;
  double total = 0.0;
  for (const float x : logits) {
    out.push_back(std::exp((x - highest) / temperature));
    total += out.back();
  }
  for (double& p : out) p /= total;
  return out;
}

inline std::vector<int32_t> top_ids(const SampledToken& sampled) {
  std::vector<int32_t> ids;
  for (const TokenScore& top : sampled.top_tokens) ids.push_back(top.id);
  return ids;
}

}  // namespace tgi::sampler_tests
