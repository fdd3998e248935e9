// The rules of TGI's own routes: their texts, their order, and what reaches the daemon.
#include "cmd/http/native_body.h"

#include "tests/catch.h"

namespace tgi::http::native_body_test {
namespace {

ApiOptions options() {
  ApiOptions out;
  out.max_input_tokens = 31;
  out.max_total_tokens = 32;
  return out;
}

GenerateBody read(const std::string& text) {
  return read_body<GenerateBody>(OrderedJson::parse(text));
}

GenerateParameters parameters(const std::string& text) {
  return *read(R"({"inputs": "hi", "parameters": )" + text + "}").parameters;
}

// The rule that these parameters break, without TGI's prefix; "" when they break none.
std::string rule_of(const std::string& text,
                    bool stream = false,
                    const ApiOptions& limits = options(),
                    const std::string& inputs = "hi") {
  const std::string prefix = "Input validation error: ";
  try {
    check_parameters(parameters(text), inputs, stream, limits);
  } catch (const ApiError& error) {
    CHECK(error.status() == 422);
    CHECK(error.type() == "validation");
    const std::string what = error.what();
    REQUIRE(what.starts_with(prefix));
    return what.substr(prefix.size());
  }
  return "";
}

}  // namespace

TEST_CASE("each of TGI's rules has its text") {
  struct Row {
    const char* parameters;
    const char* rule;
  };
  const Row row = GENERATE(
      Row{R"({"best_of": 3, "do_sample": true})", "`best_of` must be > 0 and <= 2. Given: 3"},
      Row{R"({"best_of": 2})", "you must use sampling when `best_of` is > 1"},
      Row{R"({"temperature": 0})",
          "`temperature` must be strictly positive; leave it out for a greedy answer, which is the "
          "default"},
      Row{R"({"temperature": -1})",
          "`temperature` must be strictly positive; leave it out for a greedy answer, which is the "
          "default"},
      Row{R"({"repetition_penalty": 0})", "`repetition_penalty` must be strictly positive"},
      Row{R"({"frequency_penalty": 2.01})", "`frequency_penalty` must be >= -2.0 and <= 2.0"},
      Row{R"({"top_p": 0})", "`top_p` must be > 0.0 and < 1.0"},
      Row{R"({"top_p": 1})", "`top_p` must be > 0.0 and < 1.0"},
      Row{R"({"typical_p": 1.0})", "`typical_p` must be > 0.0 and < 1.0"},
      Row{R"({"top_k": 0})", "`top_k` must be strictly positive"},
      Row{R"({"top_k": -5})", "`top_k` must be strictly positive"},
      Row{R"({"max_new_tokens": 0})", "`max_new_tokens` must be strictly positive"},
      Row{R"({"stop": ["a","b","c","d","e"]})", "`stop` supports up to 4 stop sequences. Given: 5"},
      Row{R"({"stop": ["a",""]})", "`stop` must not hold empty texts"},
      Row{R"({"seed": 1, "best_of": 2, "do_sample": true})",
          "`seed` must not be set when `best_of` > 1"},
      Row{R"({"top_n_tokens": 6})", "`top_n_tokens` must be >= 0 and <= 5. Given: 6"},
      Row{R"({"truncate": 0})", "`truncate` must be strictly positive and less than 31. Given: 0"},
      Row{R"({"truncate": 32})",
          "`truncate` must be strictly positive and less than 31. Given: 32"},
      Row{R"({"grammar": {"type": "json", "value": {}}, "response_format": {"type": "json_object"}})",
          "`grammar` and `response_format` both say what the answer has to be: give one of them"},
      Row{R"({"adapter_id": "a", "merged_adapters": {"ids": ["a"]}})",
          "at most one of `adapter_id` or `adapters` may be provided"},
      Row{R"({"merged_adapters": {"ids": []}})",
          "at least one adapter ID must be provided when setting `adapters`"},
      Row{R"({"merged_adapters": {"ids": ["a", "b"], "weights": [1]}})",
          "number of adapter IDs must match number of adapter weights"},
      Row{R"({"merged_adapters": {"ids": ["a"], "merge_strategy": "average"}})",
          "`merged_adapters.merge_strategy` must be one of linear, ties, dare_linear, dare_ties. "
          "Given: average"},
      Row{R"({"merged_adapters": {"ids": ["a"], "majority_sign_method": "sum"}})",
          "`merged_adapters.majority_sign_method` must be one of total, frequency. Given: sum"},
      Row{R"({"merged_adapters": {"ids": ["a"], "density": -0.1}})",
          "`merged_adapters.density` must be >= 0.0"},
      Row{R"({"merged_adapters": {"ids": ["a"], "merge_strategy": "ties", "density": 0}})",
          "`merged_adapters.density` must be given with merge_strategy ties, and be above 0: it is "
          "the share of the numbers that are kept"});
  CAPTURE(row.parameters);
  CHECK(rule_of(row.parameters) == row.rule);
}

TEST_CASE("what the rules allow passes, up to their limits") {
  CHECK(rule_of(R"({})").empty());
  CHECK(rule_of(R"({"best_of": 2, "top_k": 1})").empty());
  CHECK(rule_of(R"({"best_of": 1, "seed": 18446744073709551615})").empty());
  CHECK(rule_of(R"({"frequency_penalty": -2, "top_p": 0.999, "typical_p": 0.001})").empty());
  CHECK(rule_of(R"({"stop": ["a","b","c","d"], "top_n_tokens": 5, "truncate": 31})").empty());
  CHECK(rule_of(R"({"grammar": null, "adapter_id": null})").empty());
  // What LoRAX's client sends of a merge.
  CHECK(rule_of(R"({"adapter_id": null, "merged_adapters": {"ids": ["a", "b"], "weights": [],
      "merge_strategy": null, "density": 0.0, "majority_sign_method": null}})")
            .empty());
  CHECK(rule_of(R"({"merged_adapters": {"ids": ["a", "b"], "weights": [1, -0.5],
      "merge_strategy": "dare_ties", "density": 1.5, "majority_sign_method": "frequency"}})")
            .empty());
}

TEST_CASE("of several broken rules the first in TGI's order is told") {
  // Each step mends the rule that was told before.
  const std::vector<std::pair<const char*, const char*>> steps = {
      {R"("best_of": 3, "do_sample": true)", "`best_of` must be > 0"},
      {R"("temperature": 0)", "`temperature`"},
      {R"("repetition_penalty": -1)", "`repetition_penalty`"},
      {R"("frequency_penalty": 3)", "`frequency_penalty`"},
      {R"("top_p": 2)", "`top_p`"},
      {R"("typical_p": 2)", "`typical_p`"},
      {R"("top_k": 0)", "`top_k`"},
      {R"("max_new_tokens": 0)", "`max_new_tokens`"},
      {R"("stop": ["1","2","3","4","5"])", "`stop` supports"},
      {R"("top_n_tokens": 99)", "`top_n_tokens`"},
      {R"("truncate": 0)", "`truncate`"},
      {R"("grammar": {"type": "json", "value": false})", "`grammar.value`"}};
  for (size_t first = 0; first < steps.size(); ++first) {
    std::string all;
    for (size_t i = first; i < steps.size(); ++i) {
      all += (all.empty() ? "{" : ", ") + std::string(steps[i].first);
    }
    INFO(all);
    CHECK_THAT(rule_of(all + "}"), Catch::StartsWith(steps[first].second));
  }
  CHECK(rule_of(R"({"truncate": 0})", false, options(), "") == "`inputs` cannot be empty");
  CHECK(rule_of(R"({"top_n_tokens": 9})", false, options(), "") != "`inputs` cannot be empty");
}

TEST_CASE("streams allow one sequence and no details of the prompt, told before all else") {
  const char* const best_of = "`best_of` != 1 is not supported when streaming tokens";
  CHECK(rule_of(R"({"best_of": 3, "temperature": 0})", true) == best_of);
  CHECK(rule_of(R"({"best_of": 2, "decoder_input_details": true})", true) == best_of);
  CHECK(rule_of(R"({"best_of": 1})", true).empty());
  CHECK(rule_of(R"({"decoder_input_details": true})", true) ==
        "`decoder_input_details` == true is not supported when streaming tokens");
  CHECK(rule_of(R"({"decoder_input_details": true})", false).empty());
  ApiOptions single = options();
  single.max_best_of = 1;
  CHECK(rule_of(R"({"best_of": 2, "do_sample": true})", false, single) ==
        "`best_of` != 1 is not allowed for this endpoint");
}

TEST_CASE("a seed, a neutral value or nothing do not sample, as in TGI; anything else does") {
  const auto asked = [](const std::string& text) {
    return to_daemon(parameters(text), "hi", false, options()).params;
  };
  for (const char* greedy : {"{}", R"({"seed": 3})", R"({"temperature": 1.0})"}) {
    INFO(greedy);
    CHECK_FALSE(asked(greedy).do_sample);
    CHECK_FALSE(asked(greedy).temperature);
  }
  CHECK(asked(R"({"temperature": 0.5})").temperature == 0.5);
  CHECK(asked(R"({"do_sample": true})").do_sample);
  CHECK(asked(R"({"best_of": 2, "temperature": 1.0})").do_sample);
  CHECK(default_parameters().do_sample);
}

TEST_CASE("every parameter reaches the daemon under its name there") {
  const GenerateParameters all = parameters(
      R"({"best_of": 2, "temperature": 0.7, "repetition_penalty": 1.1, "frequency_penalty": 0.2,
          "presence_penalty": 0.3, "top_p": 0.9, "typical_p": 0.8, "min_p": 0.1, "top_k": 40,
          "max_new_tokens": 7, "stop": ["x"], "seed": 5, "top_n_tokens": 2, "truncate": 9,
          "do_sample": true, "return_full_text": true, "watermark": true, "details": true,
          "decoder_input_details": true, "ignore_eos_token": true})");
  ApiOptions limits = options();
  limits.enable_prefill_logprobs = true;
  const ipc::GenerateRequest whole = to_daemon(all, "hello", false, limits);
  CHECK(whole.prompt == "hello");
  CHECK_FALSE(whole.stream);
  const ipc::GenerateParams& p = whole.params;
  CHECK(p.best_of == 2);
  CHECK(p.temperature == 0.7);
  CHECK(p.repetition_penalty == 1.1);
  CHECK(p.frequency_penalty == 0.2);
  CHECK(p.presence_penalty == 0.3);
  CHECK(p.top_p == 0.9);
  CHECK(p.typical_p == 0.8);
  CHECK(p.min_p == 0.1);
  CHECK(p.top_k == 40);
  CHECK(p.max_new_tokens == 7);
  CHECK(p.stop == std::vector<std::string>{"x"});
  CHECK(p.include_stop_text);
  CHECK(p.seed == 5);
  CHECK(p.top_n_tokens == 2);
  CHECK(p.truncate == 9);
  CHECK((p.do_sample && p.return_full_text && p.watermark && p.details && p.ignore_eos));
  CHECK(p.prompt_logprobs);
  CHECK(p.max_input_tokens == 31);
  CHECK(p.max_total_tokens == 32);
  // Tokens of a stream hold generated text alone.
  CHECK_FALSE(to_daemon(all, "hello", true, limits).params.return_full_text);
  CHECK_FALSE(to_daemon(all, "hello", false, options()).params.prompt_logprobs);
}

TEST_CASE("absent parameters stay absent") {
  const ipc::GenerateParams p = to_daemon(parameters("{}"), "hi", true, options()).params;
  CHECK_FALSE((p.max_new_tokens || p.top_k || p.top_p || p.typical_p || p.min_p || p.seed));
  CHECK_FALSE((p.repetition_penalty || p.frequency_penalty || p.presence_penalty || p.truncate));
  CHECK(p.best_of == 1);
  CHECK(p.top_n_tokens == 0);
  CHECK(p.stop.empty());
  CHECK(p.logit_bias.empty());
}

TEST_CASE("a body needs inputs, and parameters may be null") {
  CHECK_THROWS_WITH(read(R"({"parameters": {}})"), Catch::EndsWith("inputs: missing field"));
  CHECK_THROWS_WITH(read(R"({"inputs": ["a"]})"), Catch::Contains("inputs: invalid type: array"));
  CHECK_FALSE(read(R"({"inputs": "a", "parameters": null})").parameters);
  CHECK_THROWS_WITH(read(R"({"inputs": "a", "parameters": {"top_k": 1.5}})"),
                    Catch::Contains("parameters.top_k: invalid type"));
  CHECK(read(R"({"inputs": "a", "stream": true, "model": "x"})").stream);
}

}  // namespace tgi::http::native_body_test
