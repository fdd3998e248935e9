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

// By how much log-probabilities differ, for each row of the case and each token. `adapter`: its
// place on the device; 0: none.
inline std::vector<std::vector<double>> logit_differences(const LoadedFixture& loaded,
                                                          const Json& golden,
                                                          int32_t adapter = 0) {
  const int32_t vocab_size = loaded.model.config.vocab_size;
  auto token_ids = golden.at("prompt_ids").get<std::vector<int32_t>>();
  const auto greedy_ids = golden.at("greedy_ids").get<std::vector<int32_t>>();
  token_ids.insert(token_ids.end(), greedy_ids.begin(), greedy_ids.end() - 1);
  std::vector<int32_t> positions;
  for (const Json& row : golden.at("rows")) positions.push_back(row.at("position").get<int32_t>());
  const auto logprobs = all_logprobs(*loaded.workers, token_ids, positions, vocab_size,
                                     loaded.kv_plan.groups.num_groups(), adapter);
  std::vector<std::vector<double>> out;
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto expected = golden.at("rows")[i].at("logits").get<std::vector<double>>();
    const double norm = log_sum_exp(expected);
    std::vector<double>& row = out.emplace_back();
    for (size_t id = 0; id < expected.size(); ++id) {
      row.push_back(std::abs(expected[id] - norm - logprobs[i][id]));
    }
  }
  return out;
}

inline void check_logits(const LoadedFixture& loaded, const Json& golden, int32_t adapter = 0) {
  const auto differences = logit_differences(loaded, golden, adapter);
  for (size_t i = 0; i < differences.size(); ++i) {
    double scale = 0;
    for (const Json& logit : golden.at("rows")[i].at("logits")) {
      scale = std::max(scale, std::abs(logit.get<double>()));
    }
    INFO("position " << golden.at("rows")[i].at("position"));
    CHECK(std::ranges::max(differences[i]) < 1e-4 * scale);
  }
}

}  // namespace tgi
