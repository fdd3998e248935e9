// What a reader is told while the engine works, and what the engine counts.
#include <numeric>
#include <set>

#include "base/shortest_double.h"
#include "tests/catch.h"
#include "tests/runtime/engine_fixture.h"

namespace tgi {
namespace {

std::unique_ptr<Request> sampling_request(std::string_view prompt,
                                          int32_t max_new_tokens,
                                          int32_t best_of,
                                          uint64_t seed) {
  auto request = request_of(prompt, max_new_tokens);
  request->best_of = best_of;
  request->sampling.do_sample = true;
  request->sampling.seed = seed;
  return request;
}

std::string text_of(const std::vector<ipc::TokenEvent>& events) {
  std::string text;
  for (const ipc::TokenEvent& event : events) text += event.text;
  return text;
}

int64_t num_observed(const Histogram& histogram) {
  return std::accumulate(histogram.counts().begin(), histogram.counts().end(), int64_t{0});
}

std::vector<const ipc::SequenceResult*> all_of(const ipc::DoneEvent& done) {
  std::vector<const ipc::SequenceResult*> out = {&done.best};
  for (const auto& other : done.others) out.push_back(&other);
  return out;
}

}  // namespace

TEST_CASE("a request that wants to be announced is, before its first token, and no other is") {
  Engine engine(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
  Answer told;
  auto request = request_of("hello", 7);
  request->announce = true;
  request->num_prompt_characters = 4;
  engine.submit(std::move(request), std::make_unique<AnswerSink>(told));
  {
    const std::lock_guard lock(told.mutex);
    REQUIRE(told.accepted);  // already when submit returns
  }
  REQUIRE(told.wait_for_end());
  CHECK(told.accepted_first);
  CHECK(told.accepted->num_prompt_tokens == 5);
  CHECK(told.accepted->num_prompt_characters == 4);
  CHECK(told.accepted->max_new_tokens == 7);
  Answer untold;
  engine.submit(request_of("hello", 7), std::make_unique<AnswerSink>(untold));
  REQUIRE(untold.wait_for_end());
  CHECK_FALSE(untold.accepted);
}

TEST_CASE("a stream of several sequences tells each token's sequence, and each is complete") {
  Engine engine(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
  Answer answer;
  engine.submit(sampling_request("hello", 20, 4, 99), std::make_unique<AnswerSink>(answer));
  REQUIRE(answer.wait_for_end());
  REQUIRE(answer.done);
  REQUIRE(answer.events.size() == 4);
  std::set<int64_t> indices;
  std::set<std::string> texts;
  for (const ipc::SequenceResult* sequence : all_of(*answer.done)) {
    CHECK(indices.insert(sequence->index).second);
    const auto& events = answer.events.at(sequence->index);
    CHECK(text_of(events) == sequence->text);
    CHECK(texts.insert(sequence->text).second);  // all drawn apart
    REQUIRE(events.size() == 20);
    for (size_t i = 0; i + 1 < events.size(); ++i) CHECK_FALSE(events[i].finish_reason);
    CHECK(events.back().finish_reason == ipc::FinishReason::kLength);
  }
  CHECK(indices == std::set<int64_t>{0, 1, 2, 3});
}

TEST_CASE("sequences of a stream end each by itself, with the prompt in front when asked") {
  const std::string text = expected_text("hello", 12, 26, 5);
  Engine engine(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
  Answer answer;
  auto request = sampling_request("hello", 40, 3, 5);
  request->stop = {text.substr(3, 2)};
  request->echo_text = "hello";
  engine.submit(std::move(request), std::make_unique<AnswerSink>(answer));
  REQUIRE(answer.wait_for_end());
  for (const ipc::SequenceResult* sequence : all_of(*answer.done)) {
    INFO("sequence " << sequence->index);
    const auto& events = answer.events.at(sequence->index);
    CHECK(text_of(events) == sequence->text);
    CHECK(sequence->text.starts_with("hello"));
    CHECK(static_cast<int64_t>(events.size()) == sequence->num_generated_tokens);
    CHECK(events.back().finish_reason == sequence->finish_reason);
    if (sequence->index == 0) {
      CHECK(sequence->text == "hello" + text.substr(0, 5));
      CHECK(sequence->finish_reason == ipc::FinishReason::kStopSequence);
    }
  }
}

TEST_CASE("a sequence's own seed gives it again alone") {
  Engine engine(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
  Answer several;
  engine.submit(sampling_request("again", 15, 3, 1234567), std::make_unique<AnswerSink>(several));
  REQUIRE(several.wait_for_end());
  CHECK(several.done->seed == 1234567U);
  std::set<uint64_t> seeds;
  for (const ipc::SequenceResult* sequence : all_of(*several.done)) {
    REQUIRE(sequence->draw_seed);
    CHECK(seeds.insert(*sequence->draw_seed).second);
    if (sequence->index == 0) CHECK(sequence->draw_seed == 1234567U);
    Answer alone;
    engine.submit(sampling_request("again", 15, 1, *sequence->draw_seed),
                  std::make_unique<AnswerSink>(alone));
    REQUIRE(alone.wait_for_end());
    CHECK(alone.done->best.text == sequence->text);
    CHECK(alone.done->best.draw_seed == sequence->draw_seed);
  }
  Answer greedy;
  engine.submit(request_of("again", 3), std::make_unique<AnswerSink>(greedy));
  REQUIRE(greedy.wait_for_end());
  CHECK_FALSE(greedy.done->best.draw_seed);
  CHECK_FALSE(greedy.done->seed);
}

TEST_CASE("steps are counted by their kind, with one observation of each time") {
  Engine engine(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
  for (int i = 0; i < 3; ++i) {
    Answer answer;
    engine.submit(request_of("the same prompt", 10), std::make_unique<AnswerSink>(answer));
    REQUIRE(answer.wait_for_end());
  }
  wait_until_idle(engine);
  const EngineStats stats = engine.stats();
  const StepMetrics& steps = stats.steps;
  CHECK(steps.prefill.num_steps == 3);
  CHECK(steps.decode.num_steps == 27);
  CHECK(steps.prefill.num_steps + steps.decode.num_steps == stats.counters.num_steps);
  for (const StepKindMetrics* kind : {&steps.prefill, &steps.decode}) {
    CHECK(kind->num_failed == 0);
    CHECK(num_observed(kind->inference_s) == kind->num_steps);
    CHECK(num_observed(kind->forward_s) == kind->num_steps);
    CHECK(num_observed(kind->deliver_s) == kind->num_steps);
    CHECK(kind->inference_s.sum() >= kind->forward_s.sum());
  }
  CHECK(num_observed(steps.batch_size) == 3);
  CHECK(steps.batch_size.sum() == 3);  // one sequence in each
  CHECK(steps.num_mixed_steps == 0);
  CHECK(steps.num_prefix_hits == 2);
  CHECK(stats.counters.num_generated_tokens == 30);
}

TEST_CASE("a prompt that comes while another request decodes makes a mixed step") {
  EngineOptions options = small_engine();
  options.num_blocks = 400;
  Answer decoding, other;  // they outlive the engine: it still fills the first in the end
  Engine engine(
      options,
      std::make_unique<FakeWorkers>(FakeOptions{.step_time = std::chrono::milliseconds(1)}),
      kTokenizer);
  engine.submit(request_of("abc", 300), std::make_unique<AnswerSink>(decoding));
  REQUIRE(decoding.wait_for_events(2));
  engine.submit(request_of("xyz", 2), std::make_unique<AnswerSink>(other));
  REQUIRE(other.wait_for_end());
  CHECK(engine.stats().steps.num_mixed_steps >= 1);
}

TEST_CASE("who leaves is counted by what the request was at") {
  EngineOptions options = small_engine();
  options.scheduler = {.max_running = 2, .max_batch_tokens = 8};
  options.num_blocks = 400;
  Engine engine(
      options,
      std::make_unique<FakeWorkers>(FakeOptions{.step_time = std::chrono::milliseconds(2)}),
      kTokenizer);
  Answer decoding, prefilling, queued;
  auto first = request_of("abc", 1000);
  auto second = request_of(std::string(1200, 'x'), 10);
  auto third = request_of("def", 10);
  const uint64_t ids[] = {first->id, second->id, third->id};
  engine.submit(std::move(first), std::make_unique<AnswerSink>(decoding));
  REQUIRE(decoding.wait_for_events(3));
  engine.submit(std::move(second), std::make_unique<AnswerSink>(prefilling));
  engine.submit(std::move(third), std::make_unique<AnswerSink>(queued));
  for (int i = 0; i < 1000 && engine.stats().num_running < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (const uint64_t id : ids) engine.cancel(id);
  wait_until_idle(engine);
  const EngineStats stats = engine.stats();
  CHECK(stats.steps.num_cancelled_decode == 1);
  CHECK(stats.steps.num_cancelled_prefill == 1);
  CHECK(stats.steps.num_cancelled_queued == 1);
  CHECK(stats.counters.num_cancelled == 3);
}

TEST_CASE("a step that fails is counted as such") {
  Engine engine(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{.fail_at_step = 5}),
                kTokenizer);
  Answer answer;
  engine.submit(request_of("abc", 100), std::make_unique<AnswerSink>(answer));
  REQUIRE(answer.wait_for_end());
  REQUIRE(answer.error);
  wait_until_idle(engine);
  CHECK(engine.stats().steps.prefill.num_steps + engine.stats().steps.decode.num_steps == 4);
}

TEST_CASE("log-probabilities have the digits of the float they were") {
  CHECK(shortest_double(-0.1F) == -0.1);
  CHECK(shortest_double(0.0F) == 0.0);
  CHECK(shortest_double(-12.345678F) == -12.345678);
  CHECK(shortest_double(1e-30F) == 1e-30);
  for (const float value : {-0.13142857F, -3.4028235e38F, 1.17549435e-38F, -7.62939453e-06F}) {
    CHECK(static_cast<float>(shortest_double(value)) == value);
    CHECK(nlohmann::json(shortest_double(value)).dump().size() <= 15);
  }
}

}  // namespace tgi
