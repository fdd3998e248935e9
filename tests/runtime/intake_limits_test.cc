// What intake makes of the asker's own limits, biases and wish to be told.
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/runtime/generation_rules.h"
#include "engine/runtime/intake.h"
#include "engine/text/byte_tokenizer.h"
#include "tests/catch.h"
#include "tests/model/model_files.h"
#include "tests/text/list_tokenizer.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi {
namespace {

const ByteTokenizer kByteTokenizer(256);
const Intake kIntake({.max_total_tokens = 32}, kByteTokenizer, nullptr, 256);

ipc::GenerateRequest ask(size_t num_prompt_tokens) {
  ipc::GenerateRequest request;
  request.prompt = std::string(num_prompt_tokens, 'x');
  return request;
}

// What it is refused with; "" when it is taken.
std::string refusal_of(const ipc::GenerateRequest& request) {
  try {
    (void)kIntake.prepare(request);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == Code::kInvalidArgument);
    return error.what();
  }
}

}  // namespace

TEST_CASE("prompt and output together must fit, in TGI's words") {
  ipc::GenerateRequest request = ask(5);
  request.params.max_new_tokens = 28;
  CHECK(refusal_of(request) ==
        "`inputs` tokens + `max_new_tokens` must be <= 32. Given: 5 `inputs` tokens and 28 "
        "`max_new_tokens`");
  request.params.max_new_tokens = 27;
  CHECK(refusal_of(request).empty());
  // The asker's own limit counts when it is lower, and only then.
  request.params.max_total_tokens = 20;
  CHECK(refusal_of(request) ==
        "`inputs` tokens + `max_new_tokens` must be <= 20. Given: 5 `inputs` tokens and 27 "
        "`max_new_tokens`");
  request.params.max_total_tokens = 1000;
  CHECK(refusal_of(request).empty());
}

TEST_CASE("a prompt must leave room for the asker's limit of it, in TGI's words") {
  ipc::GenerateRequest request = ask(9);
  request.params.max_new_tokens = 3;
  request.params.max_input_tokens = 8;
  CHECK(refusal_of(request) == "`inputs` must have less than 8 tokens. Given: 9");
  request.params.max_input_tokens = 9;
  CHECK(refusal_of(request).empty());
  // Both are broken: the sum is told first.
  request.params.max_input_tokens = 2;
  request.params.max_total_tokens = 10;
  CHECK_THAT(refusal_of(request), Catch::StartsWith("`inputs` tokens + `max_new_tokens`"));
  // No output would be left: 32 prompt tokens in a context of 32.
  CHECK(refusal_of(ask(32)) == "`inputs` must have less than 31 tokens. Given: 32");
  CHECK(refusal_of(ask(31)).empty());
}

TEST_CASE("without max_new_tokens all that fits below the asker's limit is taken") {
  ipc::GenerateRequest request = ask(5);
  CHECK(kIntake.prepare(request)->max_new_tokens == 27);
  request.params.max_total_tokens = 12;
  CHECK(kIntake.prepare(request)->max_new_tokens == 7);
  request.params.truncate = 2;
  CHECK(kIntake.prepare(request)->max_new_tokens == 10);
}

TEST_CASE("biases go to the sampler and must name tokens of the vocabulary, each once") {
  ipc::GenerateRequest request = ask(1);
  request.params.logit_bias = {{.id = 0, .bias = -100}, {.id = 199, .bias = 0.25}};
  const auto prepared = kIntake.prepare(request);
  REQUIRE(prepared->sampling.logit_bias.size() == 2);
  CHECK(prepared->sampling.logit_bias[0].bias == -100.0F);
  CHECK(prepared->sampling.logit_bias[1].id == 199);
  CHECK(prepared->sampling.logit_bias[1].bias == 0.25F);
  CHECK_FALSE(prepared->sampling.do_sample);  // a bias alone does not sample

  request.params.logit_bias = {{.id = 256, .bias = 1}};
  CHECK(refusal_of(request) == "`logit_bias`: 256 is not in the vocabulary of 256 tokens");
  request.params.logit_bias = {{.id = -1, .bias = 1}};
  CHECK(refusal_of(request) == "`logit_bias`: -1 is not in the vocabulary of 256 tokens");
  request.params.logit_bias = {{.id = 7, .bias = 1}, {.id = 8, .bias = 1}, {.id = 7, .bias = 2}};
  CHECK(refusal_of(request) == "`logit_bias`: token 7 is given twice");
}

TEST_CASE("who wants to be told is told how many characters the prompt has") {
  ipc::GenerateRequest request;
  request.prompt = "a\u20ac\U0001F600";
  CHECK_FALSE(kIntake.prepare(request)->announce);
  request.announce = true;
  const auto prepared = kIntake.prepare(request);
  CHECK(prepared->announce);
  CHECK(prepared->num_prompt_characters == 3);
  CHECK(prepared->prompt_ids.size() == 8);
}

TEST_CASE("a model without a chat template says so with a code of its own") {
  ipc::GenerateRequest request;
  request.messages = ipc::OrderedJson::parse(R"([{"role": "user", "content": "hi"}])");
  try {
    (void)kIntake.prepare(request);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kTemplate);
    CHECK_THAT(error.what(), Catch::Contains("no chat template"));
  }
}

TEST_CASE("tokens of a text come with where they stand in it") {
  const ipc::TokenizeResult result =
      kIntake.tokenize({.prompt = "a\u20ac", .messages = std::nullopt});
  REQUIRE(result.tokens.size() == 4);
  REQUIRE(result.spans.size() == 4);
  CHECK((result.spans[0].start == 0 && result.spans[0].stop == 1));
  for (size_t i = 1; i < 4; ++i) CHECK((result.spans[i].start == 1 && result.spans[i].stop == 2));
}

TEST_CASE("tokens that the model's own file suppresses are drawn by no request") {
  const Intake intake({.max_total_tokens = 32, .max_logit_bias = 4, .suppressed_ids = {3, 7}},
                      kByteTokenizer, nullptr, 256);
  ipc::GenerateRequest request = ask(5);
  const auto biases = [&] {
    std::map<int32_t, float> out;
    const auto prepared = intake.prepare(request);
    for (const LogitBias& each : prepared->sampling.logit_bias) {
      CHECK(out.emplace(each.id, each.bias).second);
    }
    return out;
  };
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  CHECK(biases() == std::map<int32_t, float>{{3, kNever}, {7, kNever}});
  request.params.logit_bias = {{.id = 7, .bias = 100}, {.id = 9, .bias = 1}};
  CHECK(biases() == std::map<int32_t, float>{{3, kNever}, {7, kNever}, {9, 1.0F}});
  request.params.logit_bias.push_back({.id = 10, .bias = 1});
  CHECK_THROWS_WITH(intake.prepare(request), Catch::Contains("this device takes up to 2"));
}

TEST_CASE("generation_config.json says which tokens are suppressed, and rules that are not kept") {
  const auto rules = [](const std::string& text) {
    const MemorySource files({{"generation_config.json", text}});
    return read_generation_rules(files, 256);
  };
  const GenerationRules some = rules(R"({"suppress_tokens": [7, 3, 7, 256, -1], "temperature": 0.5,
      "bad_words_ids": [[1]], "begin_suppress_tokens": [], "forced_bos_token_id": 2})");
  CHECK(some.suppressed_ids == std::vector<int32_t>{3, 7});
  CHECK(some.unheeded == std::vector<std::string>{"bad_words_ids", "forced_bos_token_id"});
  CHECK(rules(R"({"suppress_tokens": null})").suppressed_ids.empty());
  CHECK_THROWS_WITH(rules(R"({"suppress_tokens": ["a"]})"),
                    Catch::Contains("generation_config.json: suppress_tokens: expected a list"));
  CHECK(read_generation_rules(MemorySource({}), 256).unheeded.empty());
}

TEST_CASE("tokens that end an answer whatever the files say are those that the tokenizer has") {
  class Roles final : public ListTokenizer {
   public:
    Roles() : ListTokenizer({"a", "</s>", "<|user|>", "<|observation|>"}) {}
    std::optional<int32_t> id_of(std::string_view token) const override {
      for (int32_t id = 0; id < vocab_size(); ++id) {
        std::string piece;
        append_bytes(id, false, piece);
        if (piece == token) return id;
      }
      return std::nullopt;
    }
  };
  const LoadedConfig chatglm = load_config(
      {{"architectures", {"ChatGLMModel"}}, {"model_type", "chatglm"}, {"eos_token_id", 1}});
  std::vector<int32_t> ends = chatglm.config.eos_token_ids;
  REQUIRE(ends == std::vector<int32_t>{1});
  for (int times = 0; times < 2; ++times) {
    add_end_tokens(chatglm.architecture->end_tokens, Roles(), ends);
    CHECK(ends == std::vector<int32_t>{1, 2, 3});
  }
  add_end_tokens(chatglm.architecture->end_tokens, ListTokenizer({"a", "b"}), ends);
  CHECK(ends.size() == 3);
}

}  // namespace tgi
