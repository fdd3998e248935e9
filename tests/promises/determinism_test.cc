// Promises 1 and 2: a request's answer has the same bits alone, in any batch, with any chunking, on
// a warm or cold cache, with any number of threads and on any instruction set; a seed gives the
// same text under any load.
#include <optional>
#include <random>
#include <set>
#include <string>

#include "engine/runtime/demo_model.h"
#include "tests/promises/engine_fixture.h"

namespace tgi {
namespace {

std::vector<Asked> mixed_requests(int32_t vocab_size, bool sampled) {
  std::mt19937 random(11);
  std::vector<int32_t> shared;
  for (int i = 0; i < 70; ++i)
    shared.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(vocab_size)));
  std::vector<Asked> out;
  for (uint32_t i = 0; i < 32; ++i) {
    Asked asked;
    // A third have a common beginning, so that prefixes are shared.
    if (i % 3 == 0) asked.prompt_ids.assign(shared.begin(), shared.begin() + 20 + i);
    for (auto length = random() % 80 + 1; length > 0; --length) {
      asked.prompt_ids.push_back(
          static_cast<int32_t>(random() % static_cast<uint32_t>(vocab_size)));
    }
    asked.max_new_tokens = static_cast<int32_t>(random() % 24 + 4);
    if (sampled) {
      asked.sampling.do_sample = true;
      asked.sampling.temperature = 0.9F;
      asked.sampling.top_k = i % 4 == 0 ? 20 : 0;
      asked.sampling.top_p = i % 4 == 1 ? 0.8F : 1.0F;
      asked.sampling.repetition_penalty = i % 5 == 0 ? 1.2F : 1.0F;
      asked.sampling.frequency_penalty = i % 5 == 1 ? 0.5F : 0.0F;
      asked.sampling.seed = 1000 + i;
    }
    out.push_back(std::move(asked));
  }
  return out;
}

void check_invariance(const FileSource& model_files,
                      DType dtype,
                      bool sampled,
                      Quantization quantization = Quantization::kNone,
                      std::optional<DType> kv_dtype = {}) {
  const FileSource* const files = &model_files;
  const ModelConfig config = load_model_config(model_files).config;
  const KvGroups groups = plan_kv_groups(config, FixtureOptions{}.num_blocks * 16).groups;
  const auto asked = mixed_requests(config.vocab_size, sampled);
  std::vector<Generated> expected;
  {
    EngineFixture alone(
        *files,
        {.dtype = dtype, .quantization = quantization, .kv_dtype = kv_dtype, .num_threads = 1});
    for (const Asked& one : asked) expected.push_back(alone.generate_one(one, false));
  }
  struct Way {
    std::string name;
    FixtureOptions options;
    int num_rounds = 1;  // the second one finds a warm cache
  };
  std::vector<Way> ways = {
      {"one thread, cold then warm cache", {.num_threads = 1}, 2},
      {"two threads", {.num_threads = 2}},
      {"chunks of 7 tokens, three threads",
       {.num_threads = 3, .max_batch_tokens = 33, .max_running = 26},
       2},
      {"so few blocks that sequences are preempted",
       {.max_batch_tokens = 64, .num_blocks = 24 * groups.num_full + 10 * groups.num_windowed},
       2},
  };
  for (const std::string_view isa : available_isas()) {
    if (isa == "generic" || isa == available_isas().front()) continue;  // one is slow, one is auto
    ways.push_back({std::string(isa), {.isa = std::string(isa)}});
  }
  for (Way& way : ways) {
    way.options.dtype = dtype;
    way.options.quantization = quantization;
    way.options.kv_dtype = kv_dtype;
    EngineFixture fixture(*files, way.options);
    for (int round = 0; round < way.num_rounds; ++round) {
      const auto answers = fixture.generate(asked);
      for (size_t i = 0; i < asked.size(); ++i) {
        INFO(way.name << ", round " << round << ", request " << i);
        CHECK(answers[i] == expected[i]);
        if (round == 1 && way.options.num_blocks > 100 && asked[i].prompt_ids.size() > 16) {
          CHECK(answers[i].num_cached >= 16);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("greedy answers of 32 mixed requests are bit-identical however they are run, in bf16") {
  check_invariance(*open_demo_model(), DType::kBF16, false);
}

TEST_CASE("greedy answers of 32 mixed requests are bit-identical however they are run, in f32") {
  check_invariance(*open_demo_model(), DType::kF32, false);
}

TEST_CASE("seeded answers of 32 mixed requests are bit-identical however they are run") {
  check_invariance(*open_demo_model(), DType::kBF16, true);
}

TEST_CASE("answers of a model quantised while loading are bit-identical however they are run") {
  check_invariance(*open_demo_model(), DType::kBF16, false, Quantization::kInt8);
  check_invariance(*open_demo_model(), DType::kBF16, true, Quantization::kInt4);
}

TEST_CASE("answers from a cache of codes are bit-identical however they are run") {
  check_invariance(*open_demo_model(), DType::kBF16, false, Quantization::kNone, DType::kInt8);
  check_invariance(*open_demo_model(), DType::kF32, true, Quantization::kNone, DType::kF8E4M3);
}

TEST_CASE("answers of windowed layers are bit-identical however they are run") {
  for (const char* name : {"gemma3-pattern", "gpt-oss", "mistral-window"}) {
    INFO(name);
    const std::string models = std::string(TGI_SOURCE_DIR) + "/tests/golden/";
    const bool is_family = std::string_view(name) != "mistral-window";
    const auto files = open_folder(models + (is_family ? "families/" : "models/") + name);
    check_invariance(*files, DType::kBF16, false);
  }
}

TEST_CASE("a context is longer than what its windowed layers have room for") {
  const auto files = open_folder(TGI_SOURCE_DIR "/tests/golden/families/gemma3-pattern");
  const LoadedConfig model = load_model_config(*files);
  Asked asked = mixed_requests(model.config.vocab_size, false).front();
  while (asked.prompt_ids.size() < 200)
    asked.prompt_ids.push_back(asked.prompt_ids[asked.prompt_ids.size() / 2]);
  asked.max_new_tokens = 40;
  const Generated expected =
      EngineFixture(*files, {.dtype = DType::kBF16}).generate_one(asked, false);
  // 15 blocks for the group that keeps all and 2 x 8 for those of the two windowed layers, who
  // would want 30 without their window.
  const FixtureOptions few = {.dtype = DType::kBF16, .max_batch_tokens = 32, .num_blocks = 31};
  EngineFixture fixture(*files, few);
  REQUIRE(plan_kv_groups(model.config, 31 * 16).groups ==
          KvGroups{.num_full = 1, .num_windowed = 2, .window = 8});
  for (int round = 0; round < 2; ++round) CHECK(fixture.generate_one(asked) == expected);
  // Two of them at once: one gives way to the other.
  for (const Generated& answer : fixture.generate({asked, asked})) CHECK(answer == expected);
}

TEST_CASE("answers of heads that are taken from others are bit-identical however they are run") {
  const auto files = open_folder(TGI_SOURCE_DIR "/tests/golden/families/diffllama-three-in-one");
  check_invariance(*files, DType::kBF16, false);
  check_invariance(*files, DType::kF32, true, Quantization::kInt4);
}

// One checkpoint of each class, a few tokens: what all of the above is for some, on every
// instruction set.
TEST_CASE(
    "answers of every family are bit-identical on every instruction set, alone and together") {
  std::set<std::string> seen;
  for (const std::string& folder : golden_model_folders("families")) {
    const auto files = open_folder(folder);
    const LoadedConfig model = load_model_config(*files);
    if (!seen.insert(std::string(model.architecture->names.front())).second) continue;
    INFO(folder);
    std::vector<Asked> asked(4);
    for (size_t i = 0; i < asked.size(); ++i) {
      for (size_t t = 0; t < 3 + 11 * i; ++t) {
        const size_t id = 7 * t + t * t + (t < 17 ? 0 : 5 * i);
        asked[i].prompt_ids.push_back(
            static_cast<int32_t>(id % static_cast<size_t>(head_vocab_rows(model.config))));
      }
      asked[i].max_new_tokens = static_cast<int32_t>(4 + i);
    }
    std::vector<Generated> expected;
    EngineFixture alone(*files, {.dtype = DType::kBF16, .num_threads = 1});
    for (const Asked& one : asked) expected.push_back(alone.generate_one(one, false));
    for (const std::string_view isa : available_isas()) {
      INFO(isa);
      EngineFixture together(*files, {.dtype = DType::kBF16,
                                      .isa = std::string(isa),
                                      .num_threads = 2,
                                      .max_batch_tokens = 13});
      CHECK(together.generate(asked) == expected);
    }
  }
  CHECK(seen.size() > 100);
}

TEST_CASE("answers of latent attention and experts are bit-identical however they are run") {
  const auto files = open_folder(TGI_SOURCE_DIR "/tests/golden/families/deepseek3-odd-sizes");
  check_invariance(*files, DType::kBF16, false);
  check_invariance(*files, DType::kF32, true, Quantization::kInt8);
}

}  // namespace tgi
