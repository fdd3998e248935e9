#include <cmath>
#include <sstream>
#include <string>

#include "base/error.h"
#include "cmd/bench/load_plan.h"
#include "cmd/bench/prompts.h"
#include "cmd/bench/trace.h"
#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"
#include "tests/shared_data.h"

namespace tgi::bench {
namespace {

std::string error_of(const std::string& trace) {
  try {
    parse_trace(trace, "t");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kInvalidArgument);
    return error.what();
  }
  return "";
}

int64_t num_words(const std::string& text) {
  std::istringstream words(text);
  int64_t count = 0;
  for (std::string word; words >> word;) ++count;
  return count;
}

}  // namespace

TEST_CASE("poisson arrivals have the wanted rate and the spread of a Poisson process") {
  const std::vector<double> arrivals = poisson_arrivals(50, 20'000, std::nullopt, 3);
  REQUIRE(arrivals.size() == 20'000);
  CHECK(arrivals.back() == Approx(400).epsilon(0.03));
  double sum = 0;
  double squares = 0;
  double last = 0;
  for (const double at : arrivals) {
    REQUIRE(at > last);
    sum += at - last;
    squares += (at - last) * (at - last);
    last = at;
  }
  const double mean = sum / 20'000;
  // The standard deviation of an exponential distribution is its mean.
  CHECK(std::sqrt(squares / 20'000 - mean * mean) == Approx(0.02).epsilon(0.05));
}

TEST_CASE("the same seed gives the same arrivals, and a duration ends them") {
  CHECK(poisson_arrivals(5, 100, std::nullopt, 1) == poisson_arrivals(5, 100, std::nullopt, 1));
  CHECK(poisson_arrivals(5, 100, std::nullopt, 1) != poisson_arrivals(5, 100, std::nullopt, 2));
  const auto limited = poisson_arrivals(5, std::nullopt, 10.0, 1);
  CHECK(limited.size() > 20);
  CHECK(limited.size() < 90);
  CHECK(limited.back() <= 10);
  CHECK(poisson_arrivals(5, 7, 1000.0, 1).size() == 7);
  // By hand: the first draw of mt19937_64 with seed 5489 is 14514284786278117030.
  const double uniform = static_cast<double>(14514284786278117030u >> 11) * 0x1p-53;
  CHECK(poisson_arrivals(2, 1, std::nullopt, 5489)[0] == Approx(-std::log1p(-uniform) / 2));
}

TEST_CASE("equal prompts share what was asked and nothing else") {
  const auto source = uniform_source(
      {.num_prompt_tokens = 30, .num_shared_tokens = 10, .num_output_tokens = 5, .seed = 1}, 3);
  const auto first = source(0);
  const auto second = source(1);
  REQUIRE(first);
  REQUIRE(second);
  CHECK_FALSE(source(3));
  CHECK(num_prompt_tokens(*first) == 30);
  const auto ids = prompt_ids(first->prompt, 1000);
  const auto other = prompt_ids(second->prompt, 1000);
  REQUIRE(ids.size() == 30);
  CHECK(std::equal(ids.begin(), ids.begin() + 10, other.begin()));
  CHECK(ids[10] != other[10]);
  CHECK(uniform_source({.num_prompt_tokens = 30, .num_output_tokens = 5, .seed = 1},
                       std::nullopt)(1'000'000));
}

TEST_CASE("the Azure trace is read") {
  const auto trace = parse_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 23:59:59.5000000,374,44\r\n"
      "2023-11-17 00:00:01.7500000,396,109\r\n"
      "2023-11-17 00:00:00,1,0",
      "t");
  REQUIRE(trace.size() == 3);
  CHECK(trace[0].at_s == 0);
  CHECK(trace[0].num_prompt_tokens == 374);
  CHECK(trace[0].num_output_tokens == 44);
  CHECK(trace[1].at_s == Approx(0.5));  // in order of time
  CHECK(trace[1].num_prompt_tokens == 1);
  CHECK(trace[2].at_s == Approx(2.25));
}

TEST_CASE("the Mooncake trace is read with its shared prefixes") {
  const auto trace = parse_trace(
      R"({"timestamp": 2000, "input_length": 1200, "output_length": 52, "hash_ids": [46, 47, 48]})"
      "\n\n"
      R"({"timestamp": 3500, "input_length": 700, "output_length": 26, "hash_ids": [46, 50]})"
      "\n",
      "t");
  REQUIRE(trace.size() == 2);
  CHECK(trace[1].at_s == Approx(1.5));
  const TracePlan plan = plan_trace(trace, {});
  REQUIRE(plan.requests.size() == 2);
  const auto& long_prompt = plan.requests[0].prompt;
  const auto& short_prompt = plan.requests[1].prompt;
  CHECK(num_prompt_tokens(plan.requests[0]) == 1200);
  CHECK(num_prompt_tokens(plan.requests[1]) == 700);
  REQUIRE(long_prompt.size() == 3);
  CHECK(long_prompt[2].num_tokens == 1200 - 2 * 512);
  CHECK(long_prompt[0] == short_prompt[0]);
  CHECK(long_prompt[1].seed != short_prompt[1].seed);
  const auto a = prompt_ids(long_prompt, 5000);
  const auto b = prompt_ids(short_prompt, 5000);
  CHECK(std::equal(a.begin(), a.begin() + 512, b.begin()));
  CHECK(a[512] != b[512]);
}

TEST_CASE("a trace is replayed faster, scaled, and shortened with the count told") {
  const auto trace = parse_trace(
      R"({"timestamp": 0, "input_length": 1024, "output_length": 100, "hash_ids": [1, 2]})"
      "\n"
      R"({"timestamp": 4000, "input_length": 3000, "output_length": 400})",
      "t");
  const TracePlan plan =
      plan_trace(trace, {.speed = 2, .length_scale = 0.5, .max_total_tokens = 1000});
  CHECK(plan.requests[1].at_s == 2);
  CHECK(num_prompt_tokens(plan.requests[0]) == 512);
  CHECK(plan.requests[0].prompt[0].num_tokens == 256);
  CHECK(plan.requests[0].num_output_tokens == 50);
  CHECK(num_prompt_tokens(plan.requests[1]) == 800);
  CHECK(plan.requests[1].num_output_tokens == 200);
  CHECK(plan.num_shortened == 1);
  // Answers give way only when a prompt of one token is not enough.
  const TracePlan tight = plan_trace(trace, {.max_total_tokens = 50});
  CHECK(num_prompt_tokens(tight.requests[0]) == 1);
  CHECK(tight.requests[0].num_output_tokens == 49);
}

TEST_CASE("rubbish in a trace is refused with its line") {
  CHECK(error_of("") == "t: a trace without requests");
  CHECK(error_of("TIMESTAMP,ContextTokens,GeneratedTokens\n") == "t: a trace without requests");
  const std::string head = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  const std::string good = "2023-11-16 18:15:46.68,374,44\n";
  for (const std::string bad :
       {"hello", "1,2", "2023-11-16 18:15:46.68,374", "2023-11-16 18:15:46.68,374,44,5",
        "2023-11-16 18:15:46.68,-1,44", "2023-11-16 18:15:46.68,1e9,44",
        "2023-11-16 18:15:46.68,99999999999999999999,4", "2023-13-16 18:15:46,1,1",
        "2023-02-30 18:15:46,1,1", "2023-11-16 25:15:46,1,1", "2023-11-16 18:15:46.x,1,1",
        "2023-11-16T18:15:46+02:00,1,1", "\xFF\xFE,1,1", "nan,1,1"}) {
    INFO(bad);
    CHECK_THAT(error_of(head + good + bad + "\n"), Catch::StartsWith("t: line 3: expected "));
  }
  const std::string json = R"({"timestamp": 0, "input_length": 1, "output_length": 1})"
                           "\n";
  for (const std::string bad :
       {"x", "{", "[]", R"({"timestamp": 0})",
        R"({"timestamp": "a", "input_length": 1, "output_length": 1})",
        R"({"timestamp": 0, "input_length": -1, "output_length": 1})",
        R"({"timestamp": 0, "input_length": 1.5, "output_length": 1})",
        R"({"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": 3})",
        R"({"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": ["a"]})"}) {
    INFO(bad);
    CHECK_THAT(error_of(json + bad + "\n"), Catch::StartsWith("t: line 2: "));
  }
  // What is not asked for is not read.
  CHECK(parse_trace(head + good + "rubbish", "t", 1).size() == 1);
}

TEST_CASE("a recorded hour is read whole") {
  const std::string name = "text/traces/AzureLLMInferenceTrace_conv.csv";
  if (!has_shared_data(name)) return;
  const auto trace = parse_trace(read_file(shared_data_dir() + "/" + name), name);
  CHECK(trace.size() == 19'366);
  CHECK(trace.back().at_s > 3000);
  CHECK(trace.back().at_s < 3700);
}

TEST_CASE("prompts of words have the wanted length by the server's count") {
  const WordRate rate = fit_word_rate(24, 24 * 3 + 10, 96, 96 * 3 + 10);
  CHECK(rate.tokens_per_word == Approx(3));
  CHECK(rate.overhead_tokens == Approx(10));
  const std::vector<PromptPiece> pieces = {{1, 90}, {2, 70}};
  CHECK(num_words(prompt_text(pieces, rate)) == 30 + 20);
  CHECK(num_words(prompt_text({{1, 5}}, rate)) == 1);  // never empty
  const std::string text = prompt_text(pieces, {});
  CHECK(num_words(text) == 160);
  CHECK(text.starts_with(prompt_text({{1, 90}}, {})));
  // A server that counts nonsense does not make prompts without end.
  CHECK(fit_word_rate(24, 5, 96, 5).tokens_per_word == Approx(5.0 / 96));
  CHECK(fit_word_rate(24, 5, 96, 0).tokens_per_word == Approx(0.05));
}

}  // namespace tgi::bench
