// Who decides where a request, a preset and an API say something or nothing.
#include "engine/runtime/preset_defaults.h"
#include "engine/runtime/intake.h"
#include "tests/catch.h"

namespace tgi {
namespace {

ipc::GenerateRequest plain() {
  ipc::GenerateRequest request;
  request.prompt = "hi";
  return request;
}

Preset warm() {
  Preset preset{.from = "demo", .parameters = {}};
  preset.parameters.temperature = 0.5;
  preset.parameters.top_k = 0;
  preset.parameters.min_p = 0.2;
  preset.parameters.seed = 3;
  preset.parameters.num_predict = 9;
  preset.parameters.stop = {"end"};
  return preset;
}

constexpr ipc::SamplingDefaults kApi = {.temperature = 0.8, .top_k = 40, .top_p = 0.9};

}  // namespace

TEST_CASE("a request that says nothing has the preset's parameters, then the API's") {
  const Preset preset = warm();
  ipc::GenerateRequest request = plain();
  request.params.sampling_defaults = kApi;
  const ipc::GenerateParams params = with_defaults(&preset, request)->params;
  CHECK(params.temperature == 0.5);
  CHECK(params.top_k == ipc::kAllTokens);  // off, in spite of the API's 40
  CHECK(params.top_p == 0.9);
  CHECK(params.min_p == 0.2);
  CHECK(params.seed == 3);
  CHECK(params.stop == std::vector<std::string>{"end"});
  CHECK_FALSE(params.max_new_tokens);
  CHECK(params.sampling_defaults->max_new_tokens == 9);
  const SamplingParams sampling = resolve_sampling(params, {});
  CHECK(sampling.do_sample);
  CHECK(sampling.top_k == 0);
  CHECK_FALSE(with_defaults(nullptr, plain()));
}

TEST_CASE("what a request says wins over its model's preset") {
  const Preset preset = warm();
  ipc::GenerateRequest request = plain();
  request.params.temperature = 1.5;
  request.params.top_k = 2;
  request.params.seed = 8;
  request.params.stop = {"stop"};
  request.params.max_new_tokens = 1;
  const ipc::GenerateParams params = with_defaults(&preset, request)->params;
  CHECK(params.temperature == 1.5);
  CHECK(params.top_k == 2);
  CHECK(params.min_p == 0.2);
  CHECK(params.seed == 8);
  CHECK(params.stop == std::vector<std::string>{"stop"});
  CHECK(params.max_new_tokens == 1);
}

TEST_CASE("greedy is said by a request, or by a preset's temperature of 0") {
  Preset preset = warm();
  ipc::GenerateRequest request = plain();
  request.params.sampling_defaults = kApi;
  request.params.do_sample = false;
  CHECK_FALSE(resolve_sampling(with_defaults(&preset, request)->params, {}).do_sample);
  request.params.do_sample = true;
  CHECK(resolve_sampling(with_defaults(&preset, request)->params, {}).do_sample);
  preset.parameters.temperature = 0;
  CHECK_FALSE(resolve_sampling(with_defaults(&preset, request)->params, {}).do_sample);
  request.params.temperature = 0.7;
  CHECK(resolve_sampling(with_defaults(&preset, request)->params, {}).do_sample);
}

TEST_CASE("a chat begins with the system's prompt and the preset's messages") {
  Preset preset{.from = "demo", .parameters = {}};
  preset.system = "S";
  preset.messages = {{"system", "T"}, {"user", "a"}, {"assistant", "b"}};
  const auto roles = [&](const char* messages) {
    ipc::TokenizeParams asked;
    asked.messages = ipc::OrderedJson::parse(messages);
    std::string out;
    const auto settled = with_defaults(&preset, asked);
    for (const auto& message : *settled->messages) out += message["content"].get<std::string>();
    return out;
  };
  CHECK(roles(R"([{"role": "user", "content": "c"}])") == "STabc");
  CHECK(roles(R"([{"role": "system", "content": "X"}, {"role": "user", "content": "c"}])") ==
        "Xabc");
  CHECK(roles(R"([{"role": "user", "content": "c"}, {"role": "system", "content": "X"}])") ==
        "abcX");
  ipc::TokenizeParams prompt;
  prompt.prompt = "p";
  CHECK_FALSE(with_defaults(&preset, prompt));
}

TEST_CASE("what is given with a load goes before its preset") {
  Preset preset{.from = "demo", .parameters = {}};
  preset.parameters.num_ctx = 64;
  preset.parameters.speculate = 3;
  preset.adapter = "/a";
  preset.speculator = "/s";
  ipc::ModelSettings settings;
  fill_settings(preset, settings);
  CHECK(settings.max_total_tokens == 64);
  CHECK(settings.speculate == 3);
  CHECK(settings.merge_adapter == "/a");
  CHECK(settings.speculator == "/s");
  ipc::ModelSettings given;
  given.max_total_tokens = 32;
  given.draft_model = "/d";
  fill_settings(preset, given);
  CHECK(given.max_total_tokens == 32);
  CHECK(given.draft_model == "/d");
  CHECK(given.speculator.empty());  // one of them drafts
  CHECK(given.speculate == 3);
}

TEST_CASE("how much is drafted is said by a load, then by its preset, and 0 is said too") {
  Preset preset{.from = "demo", .parameters = {}};
  preset.parameters.speculate = 3;
  preset.speculator = "/s";
  preset.draft_model = "/d";
  preset.adapter = "/a";
  ipc::ModelSettings off;
  off.speculate = 0;
  fill_settings(preset, off);
  CHECK(off.speculate == 0);
  CHECK(off.speculator.empty());
  CHECK(off.draft_model.empty());
  CHECK(off.merge_adapter == "/a");
  ipc::ModelSettings fewer;
  fewer.speculate = 2;
  fill_settings(preset, fewer);
  CHECK(fewer.speculate == 2);
  CHECK(fewer.speculator == "/s");
  preset.parameters.speculate = 0;  // of the preset: its drafter stays unused
  ipc::ModelSettings none;
  fill_settings(preset, none);
  CHECK(none.speculate == 0);
}

TEST_CASE("a schema that can't be enforced is refused with the preset and its place in it") {
  Preset preset{.from = "demo", .parameters = {}};
  CHECK_NOTHROW(check_preset_schema(preset, Task::kEmbed, "p"));
  preset.schema = R"({"type": "array", "uniqueItems": true, "items": {"multipleOf": 7}})";
  CHECK_THROWS_WITH(check_preset_schema(preset, Task::kGenerate, "p"),
                    Catch::StartsWith("p: SCHEMA: JSON schema: schema #/uniqueItems: "));
  preset.schema = R"({"type": "array", "maxItems": 2})";
  CHECK_NOTHROW(check_preset_schema(preset, Task::kGenerate, "p"));
  CHECK_THROWS_WITH(check_preset_schema(preset, Task::kEmbed, "p"),
                    Catch::Contains("writes no answers"));
}

}  // namespace tgi
