// The whole forward pass against transformers (scripts/golden/make_model_goldens): logits to 1e-4,
// greedy tokens exactly, alone and in a mixed batch with chunked prefill. f32 throughout.
#include <cstdlib>
#include <filesystem>

#include "base/json.h"
#include "engine/gguf/model_files.h"
#include "tests/promises/engine_fixture.h"
#include "tests/promises/golden_logits.h"
#include "tests/shared_data.h"

namespace tgi {
namespace {

Json read_golden(const FileSource& files) {
  return parse_json(files.require_text("golden.json"), 16);
}

// Alone and in a mixed batch of 16.
void check_files(const FileSource& files, const Json& golden) {
  {
    LoadedFixture loaded = load_workers(files, {});
    for (const Json& one : golden.at("cases")) {
      check_logits(loaded, one);
    }
  }
  std::vector<Asked> asked;
  std::vector<std::vector<int32_t>> expected;
  for (int repeat = 0; asked.size() < 16; ++repeat) {
    for (const Json& one : golden.at("cases")) {
      expected.push_back(one.at("greedy_ids").get<std::vector<int32_t>>());
      // Different lengths, so that the batch changes while it runs.
      const auto count = static_cast<int32_t>(expected.back().size()) - repeat;
      expected.back().resize(static_cast<size_t>(count));
      asked.push_back({.prompt_ids = one.at("prompt_ids").get<std::vector<int32_t>>(),
                       .max_new_tokens = count,
                       .sampling = {}});
    }
  }
  EngineFixture alone(files, {});
  EngineFixture mixed(files, {.max_batch_tokens = 23});
  for (size_t i = 0; i < golden.at("cases").size(); ++i)
    CHECK(alone.generate_one(asked[i], false).ids == expected[i]);
  for (const bool use_prefix_cache : {false, true}) {
    const auto answers = mixed.generate(asked, use_prefix_cache);
    for (size_t i = 0; i < answers.size(); ++i) {
      INFO("request " << i);
      CHECK(answers[i].ids == expected[i]);
    }
  }
}

void check_folder(const std::string& folder) {
  INFO(folder);
  const auto files = open_folder(folder);
  check_files(*files, read_golden(*files));
}

}  // namespace

TEST_CASE("logits and greedy tokens of every trait are those of transformers") {
  for (const std::string& folder : golden_model_folders()) check_folder(folder);
}

TEST_CASE("logits and greedy tokens of every family are those of transformers") {
  const char* const only = std::getenv("TGI_GOLDEN_FAMILY");  // one, by its name
  for (const std::string& folder : golden_model_folders("families")) {
    const std::string name = std::filesystem::path(folder).filename().string();
    if (only == nullptr || name == only) check_folder(folder);
  }
}

// How far the log-probabilities of bf16 are from those of float32, in the mean over the vocabulary
// and the rows of all cases; of torch it is known (scripts/golden/make_bf16_errors).
double bf16_error(const FileSource& files) {
  LoadedFixture loaded = load_workers(files, {.dtype = DType::kBF16});
  const Json golden = read_golden(files);
  double sum = 0;
  int64_t count = 0;
  for (const Json& one : golden.at("cases")) {
    for (const std::vector<double>& row : logit_differences(loaded, one)) {
      for (const double difference : row) sum += difference;
      count += static_cast<int64_t>(row.size());
    }
  }
  return sum / static_cast<double>(count);
}

// Where an expert or a token is chosen by a hair, either may choose another one.
TEST_CASE("bf16 is nearer to float32 than torch's in the median, and nowhere five times as far") {
  const auto golden = open_folder(TGI_SOURCE_DIR "/tests/golden");
  const Json torch = parse_json(golden->require_text("bf16_errors.json"), 4);
  std::vector<double> ratios;
  for (const char* kind : {"models", "families"}) {
    for (const std::string& folder : golden_model_folders(kind)) {
      const auto found = torch.find(std::filesystem::path(folder).filename().string());
      if (found == torch.end()) continue;
      const auto files = open_folder(folder);
      const double error = bf16_error(*files);
      INFO(folder << ": " << error << ", torch " << *found);
      ratios.push_back(error / found->get<double>());
      CHECK(ratios.back() < 5.0);
    }
  }
  std::ranges::sort(ratios);
  REQUIRE(ratios.size() > 400);
  const double median = ratios[ratios.size() / 2];
  INFO("median " << median << ", most " << ratios.back());
  CHECK(median < 0.7);
}

// Of the ops that only such models use, the meaning; every device is compared with it
// (tests/conformance).
TEST_CASE(
    "the reference says what transformers says of layers with heads of their own or shared, and of "
    "several streams") {
  int count = 0;
  for (const std::string& folder : golden_model_folders("families")) {
    const auto files = open_folder(folder);
    const ModelConfig config = load_model_config(*files).config;
    if (!has_unlike_heads(config) && !has_shared_kv(config) && !has_streams(config)) continue;
    INFO(folder);
    ++count;
    LoadedFixture loaded = load_workers(*files, {.is_reference = true});
    const Json golden = read_golden(*files);
    for (const Json& one : golden.at("cases")) check_logits(loaded, one);
  }
  CHECK(count >= 11);
}

TEST_CASE("stories260K tells its published stories") {
  if (!has_shared_data("weights/stories260K")) return;
  const std::string folder = shared_data_dir() + "/weights/stories260K";
  const auto goldens = open_folder(folder);
  const Json golden = parse_json(goldens->require_text("golden_greedy.json"), 16);
  const auto files = open_folder(folder + "/hf");
  EngineFixture fixture(*files, {});
  std::vector<Asked> asked;
  for (const Json& one : golden.at("cases")) {
    asked.push_back({.prompt_ids = one.at("prompt_ids").get<std::vector<int32_t>>(),
                     .max_new_tokens = 64,
                     .sampling = {}});
  }
  const auto answers = fixture.generate(asked);
  for (size_t i = 0; i < answers.size(); ++i) {
    CHECK(answers[i].ids == golden.at("cases")[i].at("greedy_ids").get<std::vector<int32_t>>());
  }
}

// The same checkpoints as llama.cpp's converter writes them (scripts/golden/make_gguf_families).
TEST_CASE("a GGUF file gives the logits of the folder it was made from") {
  const char* other = std::getenv("TGI_GGUF_GOLDENS");
  const std::string golden = TGI_SOURCE_DIR "/tests/golden/";
  const std::filesystem::path folder = other != nullptr ? other : golden + "gguf";
  const char* only = std::getenv("TGI_GOLDEN_FAMILY");
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (only != nullptr && !name.starts_with(only)) continue;
    INFO(name);
    try {
      const bool has_own = std::filesystem::exists(entry.path() / "golden.json");
      const std::string expected = has_own ? entry.path().string() : golden + "families/" + name;
      check_files(*open_model_files(entry.path()), read_golden(*open_folder(expected)));
    } catch (const Error& error) {
      FAIL_CHECK(error.what());
    }
    ++count;
  }
  CHECK(count > 0);
}

}  // namespace tgi
