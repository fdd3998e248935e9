// Quantised checkpoints (scripts/golden/make_quantised_checkpoints): the reference backend computes
// what transformers computes from the dequantised weights; the cpu backend, which rounds
// activations to int8, stays near it and keeps its promises.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/json.h"
#include "tests/promises/engine_fixture.h"

namespace tgi::quantised_test {
namespace {

std::vector<std::string> quantised_folders() {
  std::vector<std::string> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(TGI_SOURCE_DIR "/tests/golden/quantised")) {
    out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  REQUIRE(out.size() >= 13);
  return out;
}

// One, and two where the model can be dealt out.
std::vector<int> ranks_of(const std::string& folder) {
  const LoadedConfig model = load_model_config(*open_folder(folder));
  if (model.config.has_inner_norms) return {1};
  return {1, 2};
}

double log_sum_exp(const std::vector<double>& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

struct Difference {
  double largest_logit = 0;
  double largest = 0;     // of log-probabilities to those of transformers
  double divergence = 0;  // KL, mean over positions
  int num_positions = 0;
  int num_other_best = 0;  // positions with another favourite
};

Difference difference_to_golden(const std::string& folder, const FixtureOptions& options) {
  const auto files = open_folder(folder);
  LoadedFixture loaded = load_workers(*files, options);
  Difference out;
  const Json all = parse_json(files->require_text("golden.json"), 16);
  for (const Json& golden : all.at("cases")) {
    auto token_ids = golden.at("prompt_ids").get<std::vector<int32_t>>();
    const auto greedy_ids = golden.at("greedy_ids").get<std::vector<int32_t>>();
    token_ids.insert(token_ids.end(), greedy_ids.begin(), greedy_ids.end() - 1);
    std::vector<int32_t> positions;
    for (const Json& row : golden.at("rows")) {
      positions.push_back(row.at("position").get<int32_t>());
    }
    const auto logprobs =
        all_logprobs(*loaded.workers, token_ids, positions, loaded.model.config.vocab_size,
                     loaded.kv_plan.groups.num_groups());
    for (size_t i = 0; i < positions.size(); ++i) {
      const auto expected = golden.at("rows")[i].at("logits").get<std::vector<double>>();
      const double norm = log_sum_exp(expected);
      for (size_t id = 0; id < expected.size(); ++id) {
        const double difference = expected[id] - norm - logprobs[i][id];
        out.largest_logit = std::max(out.largest_logit, std::abs(expected[id]));
        out.largest = std::max(out.largest, std::abs(difference));
        out.divergence += std::exp(expected[id] - norm) * difference;
      }
      const auto best = [](const std::vector<double>& row) {
        return std::max_element(row.begin(), row.end()) - row.begin();
      };
      out.num_other_best += best(expected) != best(logprobs[i]) ? 1 : 0;
      ++out.num_positions;
    }
  }
  out.divergence /= out.num_positions;
  return out;
}

}  // namespace

TEST_CASE("the reference computes what transformers does from the dequantised weights") {
  for (const std::string& folder : quantised_folders()) {
    INFO(folder);
    for (const int num_ranks : ranks_of(folder)) {
      INFO(num_ranks << " ranks");
      const Difference difference =
          difference_to_golden(folder, {.is_reference = true, .num_ranks = num_ranks});
      CHECK(difference.largest < 1e-4 * difference.largest_logit);
      CHECK(difference.num_other_best == 0);
    }

    const auto files = open_folder(folder);
    const Json golden = parse_json(files->require_text("golden.json"), 16);
    EngineFixture engine(*files, {.is_reference = true});
    for (const Json& item : golden.at("cases")) {
      const auto expected = item.at("greedy_ids").get<std::vector<int32_t>>();
      const Asked asked{.prompt_ids = item.at("prompt_ids").get<std::vector<int32_t>>(),
                        .max_new_tokens = static_cast<int32_t>(expected.size()),
                        .sampling = {}};
      CHECK(engine.generate_one(asked, false).ids == expected);
    }
  }
}

// Where weights are decoded nothing is rounded; elsewhere activations are, to 7 bits and a sign.
TEST_CASE("the cpu backend is near transformers, and exact where weights are decoded") {
  for (const std::string& folder : quantised_folders()) {
    for (const int num_ranks : ranks_of(folder)) {
      INFO(folder << " on " << num_ranks << " ranks");
      const Difference difference = difference_to_golden(folder, {.num_ranks = num_ranks});
      const bool is_decoded = std::ranges::any_of(
          std::array{"fp8", "act-order", "bnb-nf4-gpt2", "bnb-nf4-nested-odd", "hqq", "exl2"},
          [&](const char* part) { return folder.find(part) != std::string::npos; });
      if (is_decoded) {
        CHECK(difference.largest < 1e-4 * difference.largest_logit);
        continue;
      }
      CHECK(difference.largest > 0);
      // With four levels most weights are far from zero: sums have more of the activations'
      // rounding.
      const bool is_coarse = folder.find("gptq-2bit") != std::string::npos;
      // Of a table the numbers are rounded, too.
      const bool is_table = folder.find("bnb-nf4") != std::string::npos;
      const double part = is_coarse ? 0.1 : is_table ? 0.07 : 0.05;
      CHECK(difference.largest < part * difference.largest_logit);
      CHECK(difference.divergence < (is_coarse ? 2e-3 : 1e-3));
      CHECK(difference.num_other_best <= difference.num_positions / 6);
    }
  }
}

TEST_CASE(
    "a quantised checkpoint's answers have the same bits in any batch, alone and everywhere") {
  for (const char* name :
       {"awq", "ct-int4", "gptq-v2-8bit-row-qwen2", "ct-fp8", "youtu-awq", "ct-nvfp4",
        "modelopt-mixed", "bitnet", "bnb-int8", "bnb-nf4-skip", "bnb-fp4"}) {
    const auto files = open_folder(std::string(TGI_SOURCE_DIR "/tests/golden/quantised/") + name);
    const Json golden = parse_json(files->require_text("golden.json"), 16);
    std::vector<Asked> asked;
    for (int i = 0; i < 12; ++i) {
      const Json& item = golden.at("cases").at(static_cast<size_t>(i) % 3);
      asked.push_back({.prompt_ids = item.at("prompt_ids").get<std::vector<int32_t>>(),
                       .max_new_tokens = 16 + i,
                       .sampling = {}});
      asked.back().prompt_ids.push_back(i);
    }
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      std::vector<Generated> expected;
      {
        EngineFixture alone(*files, {.dtype = dtype, .num_threads = 1});
        for (const Asked& one : asked) expected.push_back(alone.generate_one(one, false));
      }
      for (const std::string_view isa : available_isas()) {
        INFO(name << " " << dtype_name(dtype) << " " << isa);
        EngineFixture together(*files,
                               {.dtype = dtype, .isa = std::string(isa), .max_batch_tokens = 37});
        CHECK(together.generate(asked, false) == expected);
      }
    }
  }
}

}  // namespace tgi::quantised_test
