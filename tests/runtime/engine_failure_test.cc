// What goes wrong for one request and must stay with it: logits that are not finite, and requests
// that can't even be begun.
#include "engine/runtime/engine.h"
#include "tests/catch.h"
#include "tests/runtime/engine_fixture.h"

namespace tgi {
namespace {

constexpr int32_t kPoison = '!';

std::unique_ptr<Engine> poisoned_engine(int depth, EngineOptions options = small_engine()) {
  return std::make_unique<Engine>(
      options, std::make_unique<FakeWorkers>(FakeOptions{.depth = depth, .poison = kPoison}),
      kTokenizer);
}

void check_not_finite(const Answer& answer) {
  REQUIRE(answer.error);
  CHECK(answer.error->code() == Code::kNotFinite);
  CHECK_THAT(answer.error->what(), Catch::Contains("not finite") && Catch::Contains("tgi doctor"));
  CHECK_FALSE(answer.done);
}

// Throws where a token of the prompt is spelled out, as a tokenizer with a fault would.
class FaultyTokenizer final : public Tokenizer {
 public:
  static constexpr int32_t kFault = '?';

  std::vector<int32_t> encode(std::string_view text, bool add_special) const override {
    return kTokenizer.encode(text, add_special);
  }
  void append_bytes(int32_t id, bool at_start, std::string& out) const override {
    if (id == kFault) throw std::runtime_error("no bytes for this token");
    kTokenizer.append_bytes(id, at_start, out);
  }
  std::string decode(std::span<const int32_t> ids, bool skip_special) const override {
    return kTokenizer.decode(ids, skip_special);
  }
  bool is_special(int32_t id) const override { return kTokenizer.is_special(id); }
  std::optional<int32_t> id_of(std::string_view token) const override {
    return kTokenizer.id_of(token);
  }
  std::string token_of(int32_t id) const override { return kTokenizer.token_of(id); }
  int32_t vocab_size() const override { return kTokenizer.vocab_size(); }
};

class ThrowingSink final : public ResponseSink {
 public:
  void on_accepted(const ipc::AcceptedEvent& /*event*/) override {}
  void on_token(ipc::TokenEvent&& /*event*/) override {}
  void on_done(ipc::DoneEvent&& /*event*/) override {}
  void on_error(const Error& /*error*/) override { throw std::runtime_error("nobody there"); }
};

}  // namespace

TEST_CASE("engine ends a request whose logits are not finite with an error, and no other") {
  for (const int depth : {1, 2}) {
    for (const bool stream : {true, false}) {
      const auto engine = poisoned_engine(depth);
      std::vector<std::unique_ptr<Answer>> answers;
      for (int i = 0; i < 24; ++i) {
        auto request = request_of(i % 3 == 1 ? "ab!c" : "abcd", 12);
        request->stream = stream;
        answers.push_back(std::make_unique<Answer>());
        engine->submit(std::move(request), std::make_unique<AnswerSink>(*answers.back()));
      }
      for (size_t i = 0; i < answers.size(); ++i) {
        INFO("depth " << depth << " stream " << stream << " request " << i);
        REQUIRE(answers[i]->wait_for_end());
        if (i % 3 == 1) {
          check_not_finite(*answers[i]);
          CHECK_THAT(answers[i]->error->what(), Catch::Contains("after 4 tokens"));
          CHECK(answers[i]->num_events == 0);
        } else {
          REQUIRE(answers[i]->done);
          CHECK(answers[i]->done->best.text == expected_text("abcd", 12));
        }
      }
      wait_until_idle(*engine);
      const EngineStats stats = engine->stats();
      CHECK(stats.steps.num_not_finite == 8);
      CHECK(stats.counters.num_failed == 8);
      CHECK(stats.num_blocks_used == 0);
      CHECK(stats.num_running + stats.num_waiting == 0);
      CHECK_FALSE(engine->has_failed());
    }
  }
}

TEST_CASE("engine delivers what came before the logits ceased to be finite") {
  const std::string text = expected_text("hello", 20);
  for (const int depth : {1, 2}) {
    Engine engine(small_engine(),
                  std::make_unique<FakeWorkers>(FakeOptions{.depth = depth, .poison = text[7]}),
                  kTokenizer);
    Answer answer;
    engine.submit(request_of("hello", 20), std::make_unique<AnswerSink>(answer));
    REQUIRE(answer.wait_for_end());
    check_not_finite(answer);
    const size_t end = text.find(text[7]) + 1;
    CHECK(answer.streamed == text.substr(0, end));
    CHECK_THAT(answer.error->what(),
               Catch::Contains("after " + std::to_string(5 + end) + " tokens"));
  }
}

TEST_CASE("engine ends a request of several sequences when one of them is not finite") {
  // By their seeds they differ; one of them says the poisoned letter.
  for (const int depth : {1, 2}) {
    Engine engine(small_engine(),
                  std::make_unique<FakeWorkers>(FakeOptions{.depth = depth, .poison = 'm'}),
                  kTokenizer);
    Answer several;
    auto request = request_of("abc", 60);
    request->best_of = 4;
    request->sampling.do_sample = true;
    request->sampling.seed = 3;
    engine.submit(std::move(request), std::make_unique<AnswerSink>(several));
    Answer other;
    engine.submit(request_of("abc", 1), std::make_unique<AnswerSink>(other));
    REQUIRE(several.wait_for_end());
    check_not_finite(several);
    REQUIRE(other.wait_for_end());
    CHECK(other.done);
    wait_until_idle(engine);
    CHECK(engine.stats().steps.num_not_finite == 1);
    CHECK(engine.stats().num_blocks_used == 0);
  }
}

TEST_CASE("engine ends a request whose prompt's log-probabilities are not finite") {
  for (const int depth : {1, 2}) {
    EngineOptions options = small_engine();
    options.scheduler.max_batch_tokens = 4;
    const auto engine = poisoned_engine(depth, options);
    Answer scored;
    auto request = request_of("abc!efghijkl", 4);
    request->prompt_logprobs = true;
    engine->submit(std::move(request), std::make_unique<AnswerSink>(scored));
    Answer fine;
    request = request_of("abcdefghijkl", 4);
    request->prompt_logprobs = true;
    engine->submit(std::move(request), std::make_unique<AnswerSink>(fine));
    REQUIRE(scored.wait_for_end());
    check_not_finite(scored);
    CHECK_THAT(scored.error->what(), Catch::Contains("after 4 tokens"));
    REQUIRE(fine.wait_for_end());
    REQUIRE(fine.done);
    CHECK(fine.done->prompt_tokens.size() == 12);
  }
}

TEST_CASE("engine hands on nothing that a step without a token computed") {
  const auto engine = poisoned_engine(1);
  for (int i = 0; i < 2; ++i) {
    Answer answer;
    engine->submit(request_of("abcdefgh!", 4), std::make_unique<AnswerSink>(answer));
    REQUIRE(answer.wait_for_end());
    check_not_finite(answer);
    wait_until_idle(*engine);
    CHECK(engine->stats().num_blocks_cached == 0);
  }
}

TEST_CASE("engine answers a request that can't be begun, and goes on with the others") {
  const FaultyTokenizer tokenizer;
  EngineOptions options = small_engine();
  options.num_blocks = 400;
  Engine engine(options, std::make_unique<FakeWorkers>(FakeOptions{}), tokenizer);
  const auto ask = [&](std::unique_ptr<Request> request) {
    auto answer = std::make_unique<Answer>();
    engine.submit(std::move(request), std::make_unique<AnswerSink>(*answer));
    return answer;
  };
  const auto running = ask(request_of("abc", 200));
  auto faulty = request_of("ab?c", 5);
  faulty->prompt_logprobs = true;
  const auto refused = ask(std::move(faulty));
  REQUIRE(refused->wait_for_end());
  REQUIRE(refused->error);
  CHECK(refused->error->code() == Code::kInternal);
  CHECK_THAT(refused->error->what(), Catch::Contains("no bytes for this token"));

  auto first = request_of("abc", 400);
  auto same_id = request_of("abd", 5);
  same_id->id = first->id;
  const auto original = ask(std::move(first));
  const auto doubled = ask(std::move(same_id));
  REQUIRE(doubled->wait_for_end());
  REQUIRE(doubled->error);
  CHECK_THAT(doubled->error->what(), Catch::Contains("two requests have the id"));

  const auto later = ask(request_of("xyz", 5));
  for (const auto* answer : {&running, &original, &later}) {
    REQUIRE((*answer)->wait_for_end());
    CHECK((*answer)->done);
  }
  wait_until_idle(engine);
  CHECK(engine.num_live_requests() == 0);
  CHECK_FALSE(engine.has_failed());
}

TEST_CASE("engine's thread outlives a sink that throws") {
  EngineOptions options = small_engine();
  options.num_blocks = 2000;
  const auto engine = poisoned_engine(1, options);
  engine->submit(request_of("ab!", 5), std::make_unique<ThrowingSink>());
  wait_until_idle(*engine);
  engine->submit(request_of("abc", 3000), std::make_unique<ThrowingSink>());
  Answer other;
  engine->submit(request_of("abc", 3000), std::make_unique<AnswerSink>(other));
  engine->refuse_all(Error(Code::kUnsupported, "enough"));
  REQUIRE(other.wait_for_end());
  REQUIRE(other.error);
  CHECK(other.error->code() == Code::kUnsupported);
  Answer late;
  engine->submit(request_of("abc", 3), std::make_unique<AnswerSink>(late));
  REQUIRE(late.wait_for_end());
  CHECK(late.error);
}

TEST_CASE("engine leaves nobody without an answer when it is stopped") {
  for (int round = 0; round < 50; ++round) {
    std::vector<std::unique_ptr<Answer>> answers;
    {
      Engine engine(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
      for (int i = 0; i < 20; ++i) {
        answers.push_back(std::make_unique<Answer>());
        engine.submit(request_of("abc", 50), std::make_unique<AnswerSink>(*answers.back()));
      }
    }
    for (const auto& answer : answers) CHECK((answer->done || answer->error));
  }
}

}  // namespace tgi
