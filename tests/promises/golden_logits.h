// Logits of a case of a golden file beside what the forward pass computes.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/json.h"
#include "tests/promises/engine_fixture.h"

namespace tgi {

inline double log_sum_exp(const std::vector<double>& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

// `adapter`: its place on the device; 0: none.
inline void check_logits(const LoadedFixture& loaded, const Json& golden, int32_t adapter = 0) {
  const int32_t vocab_size = loaded.model.config.vocab_size;
  auto token_ids = golden.at("prompt_ids").get<std::vector<int32_t>>();
  const auto greedy_ids = golden.at("greedy_ids").get<std::vector<int32_t>>();
  token_ids.insert(token_ids.end(), greedy_ids.begin(), greedy_ids.end() - 1);
  std::vector<int32_t> positions;
  for (const Json& row : golden.at("rows")) positions.push_back(row.at("position").get<int32_t>());
  const auto logprobs = all_logprobs(*loaded.workers, token_ids, positions, vocab_size,
                                     loaded.kv_plan.groups.num_groups(), adapter);
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto expected = golden.at("rows")[i].at("logits").get<std::vector<double>>();
    const double norm = log_sum_exp(expected);
    double scale = 0;
    double difference = 0;
    for (size_t id = 0; id < expected.size(); ++id) {
      scale = std::max(scale, std::abs(expected[id]));
      difference = std::max(difference, std::abs(expected[id] - norm - logprobs[i][id]));
    }
    INFO("position " << positions[i]);
    CHECK(difference < 1e-4 * scale);
  }
}

}  // namespace tgi
