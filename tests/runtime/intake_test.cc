#include "engine/runtime/intake.h"

#include <limits>

#include "base/error.h"
#include "engine/text/byte_tokenizer.h"
#include "tests/catch.h"

namespace tgi::intake_test {
namespace {

const ByteTokenizer kTokenizer(256);
const Intake kIntake({.max_total_tokens = 32}, kTokenizer, nullptr, 256);

ipc::GenerateRequest ask(std::string prompt) {
  ipc::GenerateRequest request;
  request.prompt = std::move(prompt);
  return request;
}

}  // namespace

TEST_CASE("intake refuses parameters out of range, naming the parameter and the value") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    void (*set)(ipc::GenerateParams& params, double value);
    double value;
    std::string name;
  };
  const std::vector<Case> cases = {
      {[](auto& p, double v) { p.temperature = v; }, -1, "temperature"},
      {[](auto& p, double v) { p.temperature = v; }, nan, "temperature"},
      {[](auto& p, double v) { p.repetition_penalty = v; }, 0, "repetition_penalty"},
      {[](auto& p, double v) { p.frequency_penalty = v; }, 2.5, "frequency_penalty"},
      {[](auto& p, double v) { p.presence_penalty = v; }, -2.5, "presence_penalty"},
      {[](auto& p, double v) { p.top_p = v; }, 0, "top_p"},
      {[](auto& p, double v) { p.top_p = v; }, 1.5, "top_p"},
      {[](auto& p, double v) { p.typical_p = v; }, nan, "typical_p"},
      {[](auto& p, double v) { p.min_p = v; }, -0.1, "min_p"},
      {[](auto& p, double v) { p.top_k = static_cast<int64_t>(v); }, 0, "top_k"},
      {[](auto& p, double v) { p.max_new_tokens = static_cast<int64_t>(v); }, -1, "max_new_tokens"},
      {[](auto& p, double v) { p.best_of = static_cast<int64_t>(v); }, 0, "best_of"},
      {[](auto& p, double v) { p.best_of = static_cast<int64_t>(v); }, 3, "sampling"},
      {[](auto& p, double v) { p.top_n_tokens = static_cast<int64_t>(v); }, 1000, "top_n_tokens"},
      {[](auto& p, double v) { p.truncate = static_cast<int64_t>(v); }, 0, "truncate"},
      {[](auto& p, double v) { p.truncate = static_cast<int64_t>(v); }, 32, "truncate"},
  };
  for (const Case& bad : cases) {
    ipc::GenerateRequest request = ask("hi");
    bad.set(request.params, bad.value);
    INFO(bad.name << " = " << bad.value);
    CHECK_THROWS_WITH(kIntake.prepare(request), Catch::Contains(bad.name));
  }
}

TEST_CASE("intake tells a prompt of ids as text when the full text is asked for") {
  ipc::GenerateRequest request;
  request.prompt_ids = std::vector<int32_t>{'H', 'i', 0xC3, 0xA9};
  CHECK(kIntake.prepare(request)->echo_text.empty());
  request.params.return_full_text = true;
  request.announce = true;
  const auto prepared = kIntake.prepare(request);
  CHECK(prepared->echo_text == "Hi\u00e9");
  CHECK(prepared->num_prompt_characters == 3);
}

TEST_CASE("intake takes a request for the prompt alone, as long as one for a token") {
  ipc::GenerateRequest request = ask(std::string(31, 'x'));
  request.params.max_new_tokens = 0;
  CHECK(kIntake.prepare(request)->max_new_tokens == 0);
}

TEST_CASE("intake refuses prompts that can't be served, with numbers") {
  CHECK_THROWS_WITH(kIntake.prepare(ask("")), Catch::Contains("empty"));
  CHECK_THROWS_WITH(kIntake.prepare(ask("ab\xFF")), Catch::Contains("byte 2 of 3"));
  CHECK_THROWS_WITH(kIntake.prepare(ask(std::string(40, 'x'))),
                    Catch::Contains("40") && Catch::Contains("32"));
  ipc::GenerateRequest too_long = ask("hello");
  too_long.params.max_new_tokens = 28;
  CHECK_THROWS_WITH(kIntake.prepare(too_long),
                    Catch::Contains("32") && Catch::Contains("5") && Catch::Contains("28"));
  too_long.params.max_new_tokens = 27;
  CHECK(kIntake.prepare(too_long)->max_new_tokens == 27);
  CHECK(kIntake.prepare(ask("hello"))->max_new_tokens == 27);
  ipc::GenerateRequest nothing;
  CHECK_THROWS_AS(kIntake.prepare(nothing), Error);
  ipc::GenerateRequest ids;
  ids.prompt_ids = std::vector<int32_t>{1, 256};
  CHECK_THROWS_WITH(kIntake.prepare(ids), Catch::Contains("256"));
  ipc::GenerateRequest chat;
  chat.messages = ipc::OrderedJson::parse(R"([{"role": "user", "content": "hi"}])");
  CHECK_THROWS_WITH(kIntake.prepare(chat), Catch::Contains("chat template"));
  ipc::GenerateRequest stop = ask("hi");
  stop.params.stop = {""};
  CHECK_THROWS_AS(kIntake.prepare(stop), Error);
}

TEST_CASE("intake refuses a text with a token behind the vocabulary, which stands for an image") {
  const Intake seeing({.max_total_tokens = 32}, kTokenizer, nullptr, 200);
  CHECK(seeing.prepare(ask("hi"))->prompt_ids.size() == 2);
  CHECK_THROWS_WITH(seeing.prepare(ask("\xF0\x9F\x98\x80")),
                    Catch::Contains("token 240") && Catch::Contains("stands for an image"));
}

TEST_CASE("intake truncates only on request and says by how much") {
  ipc::GenerateRequest request = ask("abcdefgh");
  request.params.truncate = 3;
  const auto prepared = kIntake.prepare(request);
  CHECK(prepared->prompt_ids == std::vector<int32_t>{'f', 'g', 'h'});
  CHECK(prepared->num_truncated_tokens == 5);
}

TEST_CASE("intake samples when any sampling parameter is given, and is greedy at temperature 0") {
  ipc::GenerateParams params;
  CHECK_FALSE(resolve_sampling(params, {}).do_sample);
  params.top_k = 5;
  CHECK(resolve_sampling(params, {}).do_sample);
  params.temperature = 0;
  CHECK_FALSE(resolve_sampling(params, {}).do_sample);
  params.temperature = 0.5;
  params.seed = 7;
  CHECK(resolve_sampling(params, {}).seed == 7);
  params.seed.reset();
  CHECK(resolve_sampling(params, {}).seed != resolve_sampling(params, {}).seed);
}

}  // namespace tgi::intake_test
