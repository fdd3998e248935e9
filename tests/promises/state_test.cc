// Models whose layers carry a state: the same promises, without shared prefixes.
#include <string>

#include "engine/cpu/cpu_backend.h"
#include "engine/model/rank_ranges.h"
#include "engine/model/tensor_table.h"
#include "tests/promises/engine_fixture.h"

namespace tgi::state_test {
namespace {

std::vector<Asked> with_shared_beginnings(int32_t vocab_size) {
  std::vector<Asked> out;
  for (int32_t i = 0; i < 12; ++i) {
    Asked asked;
    for (int32_t t = 0; t < 20 + 7 * i; ++t) {
      const int32_t own = t < 33 ? 0 : i;
      asked.prompt_ids.push_back((t * 7 + own * 5 + t * t) % vocab_size);
    }
    asked.max_new_tokens = 45 + i;
    out.push_back(std::move(asked));
  }
  return out;
}

}  // namespace

TEST_CASE(
    "answers of models with states are the same bits alone, in a batch, preempted and again") {
  for (const char* name :
       {"lfm2", "mamba-f32", "mamba2", "qwen3-next", "falcon-h1", "jamba", "olmo-hybrid",
        "kimi-linear", "ling3", "recurrent-gemma", "minimax", "zamba2"}) {
    const auto files = open_folder(std::string(TGI_SOURCE_DIR "/tests/golden/families/") + name);
    const std::vector<Asked> asked = with_shared_beginnings(61);
    std::vector<Generated> expected;
    EngineFixture alone(*files, {.num_threads = 1});
    for (const Asked& one : asked) expected.push_back(alone.generate_one(one, false));
    struct Way {
      FixtureOptions options;
      bool preempts = false;
    };
    const std::vector<Way> ways = {
        {{.num_threads = 2}},
        {{.num_threads = 3, .max_batch_tokens = 23, .max_running = 5}},
        {{.isa = "generic", .num_threads = 1, .max_batch_tokens = 40}},
        {{.num_threads = 2, .max_batch_tokens = 64, .num_blocks = 16}, true},
    };
    for (size_t w = 0; w < ways.size(); ++w) {
      EngineFixture fixture(*files, ways[w].options);
      for (int round = 0; round < 2; ++round) {
        const auto answers = fixture.generate(asked);
        for (size_t i = 0; i < asked.size(); ++i) {
          INFO(name << ", way " << w << ", round " << round << ", request " << i);
          CHECK(answers[i] == expected[i]);
          CHECK(answers[i].num_cached == 0);  // a prefix would need the state at its end
        }
      }
      if (ways[w].preempts) CHECK(fixture.engine().stats().counters.num_preemptions > 0);
    }
  }
}

TEST_CASE("models with states are not dealt out to ranks") {
  const auto files = open_folder(TGI_SOURCE_DIR "/tests/golden/families/mamba2");
  const LoadedConfig model = load_model_config(*files);
  CHECK_NOTHROW(check_world_size(model.config, 1));
  CHECK_THROWS_WITH(check_world_size(model.config, 2), Catch::Contains("carry a state"));
}

}  // namespace tgi::state_test
