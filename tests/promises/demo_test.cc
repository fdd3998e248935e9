// The demo model inside the executable is whole, and says what it says in transformers.
#include "base/json.h"
#include "engine/runtime/demo_model.h"
#include "engine/runtime/served_model.h"
#include "tests/promises/engine_fixture.h"

namespace tgi {

TEST_CASE("the demo model generates what transformers generates from it, in f32") {
  const auto goldens = open_folder(TGI_SOURCE_DIR "/tests/golden");
  const Json golden = parse_json(goldens->require_text("demo_greedy.json"), 16);
  const auto files = open_demo_model();
  EngineFixture fixture(*files, {});
  REQUIRE(golden.at("cases").size() >= 6);
  for (const Json& one : golden.at("cases")) {
    const auto expected = one.at("generated_ids").get<std::vector<int32_t>>();
    const Asked asked{.prompt_ids = one.at("prompt_ids").get<std::vector<int32_t>>(),
                      .max_new_tokens = static_cast<int32_t>(expected.size()),
                      .sampling = {}};
    CHECK(fixture.generate_one(asked).ids == expected);
  }
}

TEST_CASE("the demo model loads from the executable with its tokenizer and chat template") {
  const auto model = ServedModel::load(ModelOptions());
  const ipc::ModelStatus status = model->status();
  CHECK(status.has_chat_template);
  CHECK(status.num_blocks_free == status.num_blocks);
  CHECK(status.memory.weights + status.memory.kv_cache + status.memory.workspace <
        status.memory.available);
  ipc::TokenizeParams params;
  params.messages = ipc::OrderedJson::parse(R"([{"role": "user", "content": "hello"}])");
  CHECK(model->intake().tokenize(params).tokens.size() > 2);
}

}  // namespace tgi
