// Forms of answers: compiled once however many ask, refused where they stand, and kept to by a real
// model, whose answers are the same alone and beside others.
#include "engine/runtime/guide_compiler.h"

#include <fmt/format.h>

#include <atomic>
#include <regex>
#include <thread>

#include "engine/runtime/demo_model.h"
#include "engine/runtime/served_model.h"
#include "tests/catch.h"
#include "tests/runtime/engine_fixture.h"
#include "tests/text/list_tokenizer.h"

namespace tgi {
namespace {

using ipc::GuideParams;
using ipc::OrderedJson;

GuideParams pattern(const std::string& regex) {
  GuideParams out;
  out.regex = regex;
  return out;
}

GuideParams schema(const std::string& text) {
  GuideParams out;
  out.json_schema = OrderedJson::parse(text);
  return out;
}

GuidedForm form_of(const GuideParams& text) {
  GuidedForm out;
  out.text = text;
  return out;
}

std::string compile_error(GuideCompiler& compiler, const GuideParams& asked) {
  try {
    (void)compiler.compile(form_of(asked));
  } catch (const Error& error) {
    CHECK((error.code() == Code::kInvalidArgument || error.code() == Code::kUnsupported));
    return error.what();
  }
  return "none";
}

std::unique_ptr<ServedModel> served_demo() {
  ModelOptions options;
  options.backend = "cpu";
  options.dtype = "bf16";
  options.num_threads = 1;
  options.max_running = 8;
  options.max_total_tokens = 256;
  return ServedModel::load(options);
}

std::string error_of_request(ServedModel& model, const ipc::GenerateRequest& asked) {
  try {
    (void)model.intake().prepare(asked);
  } catch (const Error& error) {
    CHECK(error.code() == Code::kInvalidArgument);
    return error.what();
  }
  return "none";
}

ipc::GenerateRequest request_with(const GuideParams& guide, uint64_t seed, int64_t count) {
  ipc::GenerateRequest out;
  out.prompt = "Tell me about";
  out.params.temperature = 1.5;
  out.params.seed = seed;
  out.params.max_new_tokens = count;
  out.params.guide = guide;
  return out;
}

class RunningTokenizer final : public ListTokenizer {
 public:
  RunningTokenizer() : ListTokenizer({"<s>", "a", "b"}) {}
  std::unique_ptr<RunningText> running_text(bool /*at_start*/) const override {
    class Nothing final : public RunningText {
      void push(int32_t /*id*/, std::string& /*out*/) override {}
      void finish(std::string& /*out*/) override {}
    };
    return std::make_unique<Nothing>();
  }
};

}  // namespace

TEST_CASE("where tokens have no bytes of their own no form is taken") {
  const RunningTokenizer tokenizer;
  GuideCompiler compiler(tokenizer, 3, {0});
  CHECK(!compiler.has_vocabulary());
  CHECK_THAT(compile_error(compiler, pattern("a+")),
             Catch::StartsWith("regular expression: the decoder of this tokenizer writes a token"));
}

TEST_CASE("a form is compiled once, however many ask for it at the same time") {
  GuideCompiler compiler(kTokenizer, 512, {0});
  std::atomic<int> num_wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        for (int k = 0; k < 30; ++k) {
          const auto guidance =
              compiler.compile(form_of(pattern(fmt::format("[a-f]{{{},20}}", k % 10 + 1))));
          const auto guide = guidance->start();
          std::vector<uint32_t> mask(16);
          for (int token = 0; token < 12; ++token) {
            if (!guide->fill_mask(mask, 20)) ++num_wrong;
            if (((mask['a' / 32] >> ('a' % 32)) & 1U) == 0) ++num_wrong;
            if (((mask['g' / 32] >> ('g' % 32)) & 1U) != 0) ++num_wrong;
            guide->accept('a' + (i + token) % 6);
          }
          if (guidance->num_enough_tokens() != k % 10 + 1) ++num_wrong;
        }
      });
    }
  }
  CHECK(num_wrong == 0);
  CHECK(compiler.counts().num_compiled == 10);
  CHECK(compiler.counts().num_found == 230);
}

TEST_CASE("choices are as many as the values of an enum") {
  GuideCompiler compiler(kTokenizer, 512, {0});
  GuideParams asked;
  for (int i = 0; i < 50'000; ++i) asked.choice.push_back(fmt::format("choice number {}", i));
  asked.choice.emplace_back("choice number 7");  // once more
  CHECK(compiler.compile(form_of(asked))->num_enough_tokens() == 15);
}

TEST_CASE("of many forms those that were used last are kept") {
  GuideCompiler compiler(kTokenizer, 512, {0});
  const auto number = [](size_t i) { return pattern(fmt::format("{}[ab]", i)); };
  for (size_t i = 0; i < GuideCompiler::kMaxKept; ++i) (void)compiler.compile(form_of(number(i)));
  (void)compiler.compile(form_of(number(0)));  // used again: number 1 is the oldest now
  CHECK(compiler.counts().num_found == 1);
  (void)compiler.compile(form_of(number(GuideCompiler::kMaxKept)));
  (void)compiler.compile(form_of(number(0)));
  CHECK(compiler.counts().num_found == 2);
  (void)compiler.compile(form_of(number(1)));
  CHECK(compiler.counts().num_found == 2);
}

TEST_CASE(
    "what is no form is refused with its place, each time, and costs no place among the kept") {
  GuideCompiler compiler(kTokenizer, 512, {0});
  GuideParams gbnf;
  gbnf.gbnf = "root ::= missing";
  GuideParams lark;
  lark.lark = "start: missing";
  GuideParams huge = pattern(std::string(GuideCompiler::kMaxBytes, 'a'));
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(compile_error(compiler, pattern("a(b")), Catch::StartsWith("regular expression: "));
    CHECK_THAT(compile_error(compiler, schema(R"({"properties":{"a":{"$ref":"http://x"}}})")),
               Catch::StartsWith("JSON schema: ") && Catch::Contains("#/properties/a/$ref"));
    CHECK_THAT(compile_error(compiler, gbnf), Catch::Contains("missing"));
    CHECK_THAT(compile_error(compiler, lark), Catch::Contains("missing"));
    CHECK_THAT(compile_error(compiler, huge), Catch::Contains("expected at most 4194304 bytes"));
  }
  CHECK(compiler.counts().num_found == 0);
}

TEST_CASE("a text that can't be another has its canonical tokens, however it is come by") {
  const auto tokenizer = load_tokenizer(*open_demo_model());
  GuideCompiler compiler(*tokenizer, tokenizer->vocab_size(), {0});
  const std::string text = "Once upon a time there was a little fox.";
  const auto guide = compiler.compile(form_of(pattern(text + "[a-z]*")))->start();
  const std::vector<int32_t> whole = tokenizer->encode(text, false);
  const auto forced = [&] {
    const auto ids = guide->forced_tokens();
    return std::vector<int32_t>(ids.begin(), ids.end());
  };
  const std::vector<int32_t> first = forced();
  // The last may become a longer token.
  REQUIRE(first.size() >= 4);
  REQUIRE(first.size() < whole.size());
  CHECK(std::equal(first.begin(), first.end(), whole.begin()));
  std::vector<uint32_t> mask((static_cast<size_t>(tokenizer->vocab_size()) + 31) / 32);
  for (size_t i = 0; i < first.size(); ++i) {
    CHECK(forced() == std::vector<int32_t>(first.begin() + static_cast<ptrdiff_t>(i), first.end()));
    CHECK(guide->try_accept(first[i]));
    CHECK(forced().size() == first.size() - i - 1);
    guide->rollback();
    CHECK(forced().size() == first.size() - i);
    REQUIRE(guide->fill_mask(mask, 100));
    guide->accept(first[i]);
  }
  CHECK(forced().empty());
}

TEST_CASE("tokens that a form forces take no step of their own") {
  const auto model = served_demo();
  Answer answer;
  const std::string name = "q7z9x1k3w5q7z9x1k3w5q7z9x1k3w5";
  model->engine().submit(model->intake().prepare(request_with(
                             schema(R"({"properties":{")" + name +
                                    R"(":{"enum":["yes","no"]}},"required":[")" + name + R"("]})"),
                             1, 100)),
                         std::make_unique<AnswerSink>(answer));
  REQUIRE(answer.wait_for_end(120000));
  REQUIRE(answer.done);
  CHECK_THAT(answer.done->best.text, Catch::StartsWith(R"({")" + name + R"(":)"));
  CHECK(2 * model->engine().stats().counters.num_steps < answer.done->best.num_generated_tokens);
}

TEST_CASE("a form that the tokens can't hold is refused with the number it takes") {
  const auto model = served_demo();
  CHECK(error_of_request(*model, request_with(pattern("[0-9]{9}"), 1, 9)) == "none");
  CHECK_THAT(
      error_of_request(*model, request_with(pattern("(ab[0-9]){40}"), 1, 20)),
      Catch::Contains("`max_new_tokens` is too few for the form") && Catch::Contains("Given: 20"));
}

TEST_CASE("guided answers are of their form and the same alone and beside others") {
  const auto model = served_demo();
  const std::vector<std::pair<GuideParams, std::string>> forms = {
      {pattern("[a-z]{3,9}( [a-z]+)?"), "[a-z]{3,9}( [a-z]+)?"},
      {pattern("(yes|no), because .{10,40}"), "(yes|no), because .{10,40}"},
      {schema(R"({"type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":99}},
                  "required":["n"]})"),
       R"(\{"n":[0-9]{1,2}\})"}};
  std::vector<std::string> alone;
  for (const bool together : {false, true}) {
    std::vector<std::unique_ptr<Answer>> answers;
    for (uint64_t i = 0; i < 12; ++i) {
      ipc::GenerateRequest asked = request_with(forms[i % 3].first, i, 60);
      if (i % 4 == 3) asked.params.guide.reset();
      answers.push_back(std::make_unique<Answer>());
      model->engine().submit(model->intake().prepare(asked),
                             std::make_unique<AnswerSink>(*answers.back()));
      if (!together) REQUIRE(answers.back()->wait_for_end(120000));
    }
    for (size_t i = 0; i < answers.size(); ++i) {
      REQUIRE(answers[i]->wait_for_end(120000));
      if (answers[i]->error) FAIL(answers[i]->error->what());
      const std::string& text = answers[i]->done->best.text;
      INFO(text);
      if (i % 4 != 3) CHECK(std::regex_match(text, std::regex(forms[i % 3].second)));
      if (together) {
        CHECK(text == alone[i]);
      } else {
        alone.push_back(text);
      }
    }
  }
}

}  // namespace tgi
