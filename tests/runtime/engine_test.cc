#include "engine/runtime/engine.h"

#include <sys/resource.h>

#include <random>

#include "tests/catch.h"
#include "tests/runtime/engine_fixture.h"

namespace tgi {
TEST_CASE("engine gives each of many concurrent requests its own answer and loses none") {
  for (const int depth : {1, 2}) {
    Engine engine(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{.depth = depth}),
                  kTokenizer);
    std::mt19937 random(5);
    std::vector<std::unique_ptr<Answer>> answers;
    std::vector<std::pair<std::string, int32_t>> asked;
    for (int i = 0; i < 1000; ++i) {
      std::string prompt(random() % 60 + 1, 'p');
      for (char& c : prompt) c = random() % 12 == 0 ? 'q' : 'p';
      asked.emplace_back(prompt, static_cast<int32_t>(random() % 40 + 1));
      answers.push_back(std::make_unique<Answer>());
      engine.submit(request_of(prompt, asked.back().second),
                    std::make_unique<AnswerSink>(*answers.back()));
    }
    for (size_t i = 0; i < answers.size(); ++i) {
      REQUIRE(answers[i]->wait_for_end());
      REQUIRE(answers[i]->done);
      CHECK(answers[i]->done->best.text == expected_text(asked[i].first, asked[i].second));
      CHECK(answers[i]->streamed == answers[i]->done->best.text);
    }
    wait_until_idle(engine);
    CHECK(engine.stats().num_blocks_used == 0);
    CHECK(engine.stats().counters.num_requests == 1000);
  }
}

TEST_CASE("engine frees a leaving client's blocks while it decodes, prefills or waits") {
  EngineOptions options = small_engine();
  options.scheduler = {.max_running = 2, .max_batch_tokens = 8};
  options.num_blocks = 400;
  Engine engine(
      options,
      std::make_unique<FakeWorkers>(FakeOptions{.step_time = std::chrono::milliseconds(2)}),
      kTokenizer);
  Answer decoding;
  Answer prefilling;
  Answer queued;
  auto first = request_of("abc", 1000);
  auto second = request_of(std::string(600, 'x'), 10);
  auto third = request_of("def", 10);
  const uint64_t ids[] = {first->id, second->id, third->id};
  engine.submit(std::move(first), std::make_unique<AnswerSink>(decoding));
  REQUIRE(decoding.wait_for_events(3));
  engine.submit(std::move(second), std::make_unique<AnswerSink>(prefilling));
  engine.submit(std::move(third), std::make_unique<AnswerSink>(queued));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(engine.stats().num_running == 2);
  CHECK(engine.stats().num_waiting == 1);
  for (const uint64_t id : ids) engine.cancel(id);
  wait_until_idle(engine);
  const EngineStats stats = engine.stats();
  CHECK(stats.num_blocks_used == 0);
  CHECK(stats.num_running + stats.num_waiting == 0);
  CHECK(stats.counters.num_cancelled == 3);
  CHECK_FALSE(queued.done);
}

TEST_CASE(
    "engine pauses a reader that does not acknowledge, lets others run, resumes it and later "
    "cancels it") {
  EngineOptions options = small_engine();
  options.num_blocks = 2000;
  options.slow_reader_timeout = std::chrono::milliseconds(700);
  Engine engine(options, std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
  Answer slow;
  auto request = request_of("slow", 3000);
  const uint64_t id = request->id;
  engine.submit(std::move(request), std::make_unique<AnswerSink>(slow));
  REQUIRE(slow.wait_for_events(Engine::kMaxUnacknowledged));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(slow.num_events == Engine::kMaxUnacknowledged);
  Answer other;
  engine.submit(request_of("other", 100), std::make_unique<AnswerSink>(other));
  REQUIRE(other.wait_for_end());
  CHECK(other.done);

  engine.acknowledge(id, Engine::kMaxUnacknowledged);
  REQUIRE(slow.wait_for_events(2 * Engine::kMaxUnacknowledged));
  REQUIRE(slow.wait_for_end());
  REQUIRE(slow.error);
  CHECK(slow.error->code() == Code::kCancelled);
  wait_until_idle(engine);
  CHECK(engine.stats().num_blocks_used == 0);
}

TEST_CASE("engine answers everyone when a step fails and refuses what comes later") {
  Engine engine(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{.fail_at_step = 5}),
                kTokenizer);
  std::vector<std::unique_ptr<Answer>> answers;
  for (int i = 0; i < 20; ++i) {
    answers.push_back(std::make_unique<Answer>());
    engine.submit(request_of("abc", 100), std::make_unique<AnswerSink>(*answers.back()));
  }
  for (const auto& answer : answers) {
    REQUIRE(answer->wait_for_end());
    REQUIRE(answer->error);
    CHECK(answer->error->code() == Code::kDeviceLost);
  }
  CHECK(engine.has_failed());
  Answer late;
  engine.submit(request_of("abc", 5), std::make_unique<AnswerSink>(late));
  REQUIRE(late.wait_for_end());
  CHECK(late.error);
}

TEST_CASE(
    "engine ends a sequence by length, end token or stop string, in this order of precedence") {
  const std::string text = expected_text("hello", 12);
  const auto finish = [&](int32_t max_new, std::vector<int32_t> eos, std::vector<std::string> stop,
                          bool include) {
    EngineOptions options = small_engine();
    options.eos_token_ids = std::move(eos);
    Engine engine(options, std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
    Answer answer;
    auto request = request_of("hello", max_new);
    request->stop = std::move(stop);
    request->include_stop_text = include;
    request->details = true;
    engine.submit(std::move(request), std::make_unique<AnswerSink>(answer));
    REQUIRE(answer.wait_for_end());
    CHECK(answer.streamed == answer.done->best.text);
    CHECK(answer.done->best.tokens.size() ==
          static_cast<size_t>(answer.done->best.num_generated_tokens));
    return answer.done->best;
  };
  const auto by_length = finish(5, {}, {}, true);
  CHECK(by_length.finish_reason == ipc::FinishReason::kLength);
  CHECK(by_length.text == text.substr(0, 5));

  size_t at = 4;
  while (text.find(text[at]) < at) ++at;
  const auto by_eos = finish(12, {text[at]}, {}, true);
  CHECK(by_eos.finish_reason == ipc::FinishReason::kEosToken);
  CHECK(by_eos.text == text.substr(0, at));
  CHECK(by_eos.num_generated_tokens == static_cast<int64_t>(at) + 1);
  CHECK(finish(static_cast<int32_t>(at) + 1, {text[at]}, {}, true).finish_reason ==
        ipc::FinishReason::kLength);

  const auto with_stop = finish(12, {}, {text.substr(6, 3)}, true);
  CHECK(with_stop.finish_reason == ipc::FinishReason::kStopSequence);
  CHECK(with_stop.text == text.substr(0, 9));
  CHECK(with_stop.stop_sequence == text.substr(6, 3));
  CHECK(finish(12, {}, {text.substr(6, 3)}, false).text == text.substr(0, 6));
}

TEST_CASE("engine reports the log-probabilities of the prompt whatever the chunks") {
  for (const int32_t budget : {3, 64}) {
    EngineOptions options = small_engine();
    options.scheduler.max_batch_tokens = budget;
    Engine engine(options, std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
    for (int round = 0; round < 2; ++round) {
      Answer answer;
      auto request = request_of("abcdefghij", 2);
      request->prompt_logprobs = true;
      request->sampling.top_n_tokens = round;
      engine.submit(std::move(request), std::make_unique<AnswerSink>(answer));
      REQUIRE(answer.wait_for_end());
      const auto& tokens = answer.done->prompt_tokens;
      REQUIRE(tokens.size() == 10);
      CHECK_FALSE(tokens[0].logprob);
      for (size_t i = 1; i < tokens.size(); ++i) CHECK(tokens[i].logprob.value() == -tokens[i].id);
      CHECK(answer.done->num_cached_tokens == 0);
      const auto& tops = answer.done->prompt_top_tokens;
      REQUIRE(tops.size() == (round == 0 ? 0U : 10U));
      for (size_t i = 0; i < tops.size(); ++i) {
        REQUIRE(tops[i].size() == (i == 0 ? 0U : 1U));
        if (i > 0) CHECK(tops[i][0].id == tokens[i].id);
      }
    }
  }
}

TEST_CASE("engine ends each of many requests at its own end token or stop string") {
  for (const int depth : {1, 2}) {
    EngineOptions options = small_engine();
    options.eos_token_ids = {'e'};
    options.scheduler.max_running = 6;
    options.num_blocks = 24;  // few: blocks and slots change hands all the time
    Engine engine(options, std::make_unique<FakeWorkers>(FakeOptions{.depth = depth, .vocab = 8}),
                  kTokenizer);
    std::mt19937 random(11);
    std::vector<std::unique_ptr<Answer>> answers;
    std::vector<std::string> expected;
    for (int i = 0; i < 600; ++i) {
      const std::string prompt(random() % 20 + 1, static_cast<char>('p' + random() % 3));
      const auto length = static_cast<int32_t>(random() % 30 + 1);
      auto request = request_of(prompt, length);
      request->stop = {"ab", "hh"};
      request->include_stop_text = false;
      request->sampling.do_sample = true;
      request->sampling.seed = random();
      const std::string all = expected_text(prompt, length, 8, request->sampling.seed);
      size_t end = all.size();
      for (const char* stop : {"e", "ab", "hh"}) end = std::min(end, all.find(stop));
      expected.push_back(all.substr(0, end));
      answers.push_back(std::make_unique<Answer>());
      engine.submit(std::move(request), std::make_unique<AnswerSink>(*answers.back()));
    }
    for (size_t i = 0; i < answers.size(); ++i) {
      REQUIRE(answers[i]->wait_for_end());
      REQUIRE(answers[i]->done);
      REQUIRE(answers[i]->done->best.text == expected[i]);
    }
    wait_until_idle(engine);
    CHECK(engine.stats().num_blocks_used == 0);
  }
}

TEST_CASE("engine counts the time of a step without its wait for the one before") {
  const auto before = Clock::now();
  Engine engine(small_engine(),
                std::make_unique<FakeWorkers>(
                    FakeOptions{.depth = 2, .step_time = std::chrono::milliseconds(5)}),
                kTokenizer);
  Answer answer;
  engine.submit(request_of("abc", 40), std::make_unique<AnswerSink>(answer));
  REQUIRE(answer.wait_for_end());
  wait_until_idle(engine);
  const double elapsed = std::chrono::duration<double>(Clock::now() - before).count();
  const StepMetrics steps = engine.stats().steps;
  CHECK(steps.decode.num_steps >= 39);
  // One step at a time is on the device: all together can't take longer than there was time.
  CHECK(steps.prefill.forward_s.sum() + steps.decode.forward_s.sum() <= elapsed);
  CHECK(steps.decode.forward_s.sum() >= 39 * 0.005);
}

TEST_CASE("engine makes prefill chunks as long as the target time allows, two steps deep too") {
  for (const int depth : {1, 2}) {
    EngineOptions options = small_engine();
    options.scheduler = {
        .max_running = 4, .max_batch_tokens = 200, .min_chunk_tokens = 4, .target_step_ms = 30};
    options.num_blocks = 1000;
    std::vector<int32_t> rows;
    double elapsed_ms = 0;
    Answer decoding;
    Answer prefilling;
    {
      Engine engine(
          options,
          std::make_unique<FakeWorkers>(FakeOptions{
              .depth = depth, .token_time = std::chrono::microseconds(500), .mixed_rows = &rows}),
          kTokenizer);
      auto first = request_of(std::string(40, 'a'), 450);
      const uint64_t id = first->id;
      engine.submit(std::move(first), std::make_unique<AnswerSink>(decoding));
      REQUIRE(decoding.wait_for_events(3));
      const auto before = Clock::now();
      engine.submit(request_of(std::string(1500, 'x'), 1),
                    std::make_unique<AnswerSink>(prefilling));
      REQUIRE(prefilling.wait_for_end());
      elapsed_ms = std::chrono::duration<double, std::milli>(Clock::now() - before).count();
      engine.cancel(id);
    }
    INFO("depth " << depth << ", " << rows.size() << " steps");
    REQUIRE(rows.size() > 10);
    // However slow the machine: the chunks follow what was measured. With the wait for the step
    // before counted in, a step would take half of the 30 ms.
    CHECK(elapsed_ms / static_cast<double>(rows.size()) >= 20);
  }
}

TEST_CASE("engine computes the prompt alone when no token is asked for") {
  Engine engine(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
  for (const bool streams : {false, true}) {
    Answer answer;
    auto request = request_of("abc", 0);
    request->prompt_logprobs = true;
    request->details = true;
    request->stream = streams;
    request->echo_text = "abc";
    engine.submit(std::move(request), std::make_unique<AnswerSink>(answer));
    REQUIRE(answer.wait_for_end());
    REQUIRE(answer.done);
    CHECK(answer.done->prompt_tokens.at(2).logprob.value() == -'c');
    CHECK(answer.done->best.text == "abc");
    CHECK(answer.done->best.tokens.empty());
    CHECK(answer.done->best.num_generated_tokens == 0);
    CHECK(answer.done->best.finish_reason == ipc::FinishReason::kLength);
  }
}

TEST_CASE("engine sleeps while nothing is to do") {
  Engine engine(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto cpu_ms = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
  };
  const double before = cpu_ms();
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  CHECK(cpu_ms() - before < 10);
}

TEST_CASE("an engine that is dropped at any moment ends, whatever it was about to wait for") {
  for (int i = 0; i < 3000; ++i) {
    Answer answer;
    auto engine = std::make_unique<Engine>(
        small_engine(), std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
    if (i % 3 == 0) {
      engine->submit(request_of("ab", 1), std::make_unique<AnswerSink>(answer));
      if (i % 2 == 0) REQUIRE(answer.wait_for_end());
    }
    const auto until = Clock::now() + std::chrono::microseconds(i % 60);
    while (Clock::now() < until) {
    }
    engine.reset();
  }
}

}  // namespace tgi
