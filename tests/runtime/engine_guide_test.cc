// Answers under guidance: every token is drawn from the mask that the tokens before it make,
// however many steps are in flight, and nobody else notices.
#include <array>
#include <random>

#include "tests/catch.h"
#include "tests/runtime/engine_fixture.h"
#include "tests/runtime/parity_guidance.h"

namespace tgi {
namespace {

// What FakeWorkers draws under ParityGuidance.
std::string guided_text(std::string_view prompt, int32_t count) {
  std::vector<int32_t> ids;
  for (const char c : prompt) ids.push_back(static_cast<unsigned char>(c));
  std::vector<int32_t> taken;
  std::string text;
  for (int32_t i = 0; i < count; ++i) {
    int32_t id = 'a' + fake_next_token(ids, 26);
    while (id < 'a' || id > 'z' || !ParityGuide::allows(taken, id)) id = (id + 1) % 512;
    ids.push_back(id);
    taken.push_back(id);
    text += static_cast<char>(id);
  }
  return text;
}

class BrokenGuide final : public TokenGuide {
 public:
  enum class Fault { kNoToken, kThrowsInMask, kThrowsInAccept };
  explicit BrokenGuide(Fault fault) : fault_(fault) {}
  bool fill_mask(std::span<uint32_t> mask, int64_t max_tokens) override {
    lowest_max_tokens = std::min(lowest_max_tokens, max_tokens);
    std::fill(mask.begin(), mask.end(), ~0U);
    if (num_accepted_ + num_tried_ < 3 || fault_ == Fault::kThrowsInAccept) return true;
    if (fault_ == Fault::kThrowsInMask) throw Error(Code::kOutOfMemory, "grown too large");
    return false;
  }
  void accept(int32_t /*token_id*/) override {
    if (fault_ == Fault::kThrowsInAccept && num_accepted_ == 3)
      throw Error(Code::kOutOfMemory, "grown too large");
    ++num_accepted_;
  }
  bool try_accept(int32_t /*token_id*/) override {
    if (fault_ == Fault::kThrowsInAccept && num_accepted_ + num_tried_ == 3)
      throw Error(Code::kOutOfMemory, "grown too large");
    ++num_tried_;
    return true;
  }
  void rollback() override { num_tried_ = 0; }
  bool is_over() override { return false; }

  static inline int64_t lowest_max_tokens = 1000;

 private:
  const Fault fault_;
  int num_accepted_ = 0;
  int num_tried_ = 0;
};

// Over after so many tokens, whatever they are.
class ShortGuide final : public TokenGuide {
 public:
  explicit ShortGuide(int count) : left_(count) {}
  bool fill_mask(std::span<uint32_t> mask, int64_t /*max_tokens*/) override {
    std::fill(mask.begin(), mask.end(), ~0U);
    return left_ > 0;
  }
  void accept(int32_t /*token_id*/) override { --left_; }
  bool try_accept(int32_t /*token_id*/) override {
    --left_;
    ++num_tried_;
    return true;
  }
  void rollback() override { left_ += std::exchange(num_tried_, 0); }
  bool is_over() override { return left_ == 0; }

 private:
  int left_;
  int num_tried_ = 0;
};

class ShortGuidance final : public Guidance {
 public:
  explicit ShortGuidance(int count) : count_(count) {}
  std::unique_ptr<TokenGuide> start() const override {
    return std::make_unique<ShortGuide>(count_);
  }
  int64_t num_enough_tokens() const override { return 1; }

 private:
  const int count_;
};

// Wants the text "abcdefgh" over and over; behind each h one token is free.
class ForcingGuide final : public TokenGuide {
 public:
  bool fill_mask(std::span<uint32_t> mask, int64_t /*max_tokens*/) override {
    std::fill(mask.begin(), mask.end(), ~0U);
    return true;
  }
  void accept(int32_t /*token_id*/) override { ++num_accepted_; }
  bool try_accept(int32_t /*token_id*/) override {
    ++num_tried_;
    return true;
  }
  void rollback() override { num_tried_ = 0; }
  std::span<const int32_t> forced_tokens() override {
    return std::span(kText).subspan((num_accepted_ + num_tried_) % (kText.size() + 1));
  }
  bool is_over() override { return false; }

 private:
  static constexpr std::array<int32_t, 8> kText{'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'};
  size_t num_accepted_ = 0;
  size_t num_tried_ = 0;
};

class ForcingGuidance final : public Guidance {
 public:
  std::unique_ptr<TokenGuide> start() const override { return std::make_unique<ForcingGuide>(); }
  int64_t num_enough_tokens() const override { return 1; }
};

class BrokenGuidance final : public Guidance {
 public:
  explicit BrokenGuidance(BrokenGuide::Fault fault) : fault_(fault) {}
  std::unique_ptr<TokenGuide> start() const override {
    return std::make_unique<BrokenGuide>(fault_);
  }
  int64_t num_enough_tokens() const override { return 1; }

 private:
  const BrokenGuide::Fault fault_;
};

}  // namespace

TEST_CASE("guided and free answers run together, with the same tokens at any depth and pressure") {
  for (const int depth : {1, 2}) {
    for (const int32_t num_blocks : {64, 24}) {  // with the fewer, sequences are preempted
      EngineOptions options = small_engine();
      options.num_blocks = num_blocks;
      Engine engine(options, std::make_unique<FakeWorkers>(FakeOptions{.depth = depth}),
                    kTokenizer);
      std::mt19937 random(7);
      std::vector<std::unique_ptr<Answer>> answers;
      std::vector<std::string> expected;
      for (int i = 0; i < 300; ++i) {
        const std::string prompt(random() % 30 + 1, static_cast<char>('p' + random() % 3));
        const auto count = static_cast<int32_t>(random() % 40 + 1);
        auto request = request_of(prompt, count);
        const bool is_guided = random() % 2 == 0;
        if (is_guided) request->guidance = std::make_shared<ParityGuidance>('a', 'z');
        expected.push_back(is_guided ? guided_text(prompt, count) : expected_text(prompt, count));
        answers.push_back(std::make_unique<Answer>());
        engine.submit(std::move(request), std::make_unique<AnswerSink>(*answers.back()));
      }
      for (size_t i = 0; i < answers.size(); ++i) {
        REQUIRE(answers[i]->wait_for_end());
        REQUIRE(answers[i]->done);
        CHECK(answers[i]->done->best.text == expected[i]);
      }
      wait_until_idle(engine);
      CHECK(engine.stats().num_blocks_used == 0);
      if (num_blocks == 24) CHECK(engine.stats().counters.num_preemptions > 0);
    }
  }
}

TEST_CASE(
    "two steps stay in flight, and without masks the tokens of the second are drawn at once") {
  for (const bool is_guided : {false, true}) {
    AheadCounts ahead;
    {
      Engine engine(small_engine(),
                    std::make_unique<FakeWorkers>(FakeOptions{
                        .depth = 2, .step_time = std::chrono::microseconds(500), .ahead = &ahead}),
                    kTokenizer);
      std::vector<std::unique_ptr<Answer>> answers;
      for (int i = 0; i < 4; ++i) {
        auto request = request_of(std::string(1 + i, 'p'), 60);
        if (is_guided && i == 0) request->guidance = std::make_shared<ParityGuidance>('a', 'z');
        answers.push_back(std::make_unique<Answer>());
        engine.submit(std::move(request), std::make_unique<AnswerSink>(*answers.back()));
      }
      for (const auto& answer : answers) REQUIRE(answer->wait_for_end());
    }
    CAPTURE(is_guided, ahead.num_steps, ahead.num_submitted, ahead.num_sampled);
    CHECK(ahead.num_steps >= 60);
    // The first steps come before all requests are there, the last has none behind it.
    CHECK(ahead.num_submitted >= ahead.num_steps - 6);
    if (!is_guided) CHECK(ahead.num_sampled == ahead.num_submitted);
  }
}

TEST_CASE("each of several sequences of a request has a guide of its own") {
  Engine engine(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{.depth = 2}), kTokenizer);
  Answer answer;
  auto request = request_of("abc", 20);
  request->best_of = 3;
  request->stream = false;
  request->guidance = std::make_shared<ParityGuidance>('a', 'z');
  engine.submit(std::move(request), std::make_unique<AnswerSink>(answer));
  REQUIRE(answer.wait_for_end());
  REQUIRE(answer.done);
  CHECK(answer.done->best.text == guided_text("abc", 20));
}

TEST_CASE("a guide that fails, or knows no token, costs its request and nobody else") {
  for (const int depth : {1, 2}) {
    using Fault = BrokenGuide::Fault;
    for (const Fault fault : {Fault::kNoToken, Fault::kThrowsInMask, Fault::kThrowsInAccept}) {
      BrokenGuide::lowest_max_tokens = 1000;
      Engine engine(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{.depth = depth}),
                    kTokenizer);
      Answer broken;
      Answer other;
      auto request = request_of("abc", 9);
      request->guidance = std::make_shared<BrokenGuidance>(fault);
      engine.submit(request_of("abcd", 40), std::make_unique<AnswerSink>(other));
      engine.submit(std::move(request), std::make_unique<AnswerSink>(broken));
      REQUIRE(broken.wait_for_end());
      REQUIRE(broken.error);
      CHECK(broken.num_events == 3);
      CHECK(BrokenGuide::lowest_max_tokens == 6);
      CHECK_THAT(
          broken.error->what(),
          Catch::Contains(fault == Fault::kNoToken ? "no token of this model" : "grown too large"));
      REQUIRE(other.wait_for_end());
      REQUIRE(other.done);
      CHECK(other.done->best.text == expected_text("abcd", 40));
      wait_until_idle(engine);
      CHECK(engine.stats().num_blocks_used == 0);
      CHECK(engine.stats().steps.num_not_finite == 0);
    }
  }
}

TEST_CASE("what a form forces is computed in one step, and the answer is that of single steps") {
  const auto answer_of = [](int32_t max_forced_tokens, int32_t num_blocks, int64_t& num_steps) {
    EngineOptions options = small_engine();
    options.scheduler.max_forced_tokens = max_forced_tokens;
    options.num_blocks = num_blocks;
    Engine engine(options, std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
    std::vector<std::unique_ptr<Answer>> answers;
    for (int i = 0; i < 6; ++i) {
      auto request = request_of(std::string(1 + i, 'p'), 61);
      request->guidance = std::make_shared<ForcingGuidance>();
      request->details = true;
      answers.push_back(std::make_unique<Answer>());
      engine.submit(std::move(request), std::make_unique<AnswerSink>(*answers.back()));
    }
    std::string texts;
    for (const auto& answer : answers) {
      REQUIRE(answer->wait_for_end());
      REQUIRE(answer->done);
      CHECK(answer->done->best.num_generated_tokens == 61);
      // They are not guesses, as those of speculation are.
      CHECK(answer->done->best.num_skipped_tokens == 0);
      texts += answer->done->best.text + "\n";
    }
    wait_until_idle(engine);
    CHECK(engine.stats().num_blocks_used == 0);
    num_steps = engine.stats().counters.num_steps;
    return texts;
  };
  int64_t single = 0;
  int64_t chunks = 0;
  int64_t scarce = 0;
  const std::string expected = answer_of(0, 200, single);
  CHECK_THAT(expected, Catch::StartsWith("abcdefgh") && Catch::Contains("\nabcdefgh"));
  CHECK(answer_of(16, 200, chunks) == expected);
  CHECK(answer_of(3, 24, scarce) == expected);
  CHECK(single >= 61);
  CHECK(chunks < 30);
}

TEST_CASE("a request that biases one of the tokens that may be drawn is not forced") {
  EngineOptions options = small_engine();
  options.scheduler.max_forced_tokens = 16;
  Engine engine(options, std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
  Answer answer;
  auto request = request_of("abc", 12);
  request->guidance = std::make_shared<ForcingGuidance>();
  request->sampling.logit_bias = {{.id = 'a', .bias = -100}};
  engine.submit(std::move(request), std::make_unique<AnswerSink>(answer));
  REQUIRE(answer.wait_for_end());
  REQUIRE(answer.done);
  CHECK(answer.done->best.text == expected_text("abc", 12));
}

TEST_CASE("a client that leaves while its masks are waited for holds nobody up") {
  for (int round = 0; round < 20; ++round) {
    Engine engine(small_engine(),
                  std::make_unique<FakeWorkers>(
                      FakeOptions{.depth = 2, .step_time = std::chrono::microseconds(300)}),
                  kTokenizer);
    Answer leaving;
    Answer staying;
    auto request = request_of("abc", 5000);
    request->max_new_tokens = 150;
    request->guidance = std::make_shared<ParityGuidance>('a', 'z');
    const uint64_t id = request->id;
    engine.submit(std::move(request), std::make_unique<AnswerSink>(leaving));
    auto second = request_of("abd", 40);
    second->guidance = std::make_shared<ParityGuidance>('a', 'z');
    engine.submit(std::move(second), std::make_unique<AnswerSink>(staying));
    REQUIRE(leaving.wait_for_events(2 + round % 5));
    engine.cancel(id);
    REQUIRE(staying.wait_for_end());
    REQUIRE(staying.done);
    CHECK(staying.done->best.text == guided_text("abd", 40));
  }
}

TEST_CASE("an answer that can only end ends without a step for its end token") {
  for (const int depth : {1, 2}) {
    Engine engine(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{.depth = depth}),
                  kTokenizer);
    Answer answer;
    auto request = request_of("abc", 50);
    request->guidance = std::make_shared<ShortGuidance>(7);
    engine.submit(std::move(request), std::make_unique<AnswerSink>(answer));
    REQUIRE(answer.wait_for_end());
    REQUIRE(answer.done);
    CHECK(answer.done->best.text == expected_text("abc", 7));
    CHECK(answer.done->best.finish_reason == ipc::FinishReason::kEosToken);
    wait_until_idle(engine);
    CHECK(engine.stats().num_blocks_used == 0);
  }
}

TEST_CASE("an end token that the guide allows ends the answer, whether or not ends are heeded") {
  for (const bool ignore_eos : {false, true}) {
    EngineOptions options = small_engine();
    options.eos_token_ids = {'z' + 2};
    Engine engine(options, std::make_unique<FakeWorkers>(FakeOptions{.depth = 2}), kTokenizer);
    Answer answer;
    auto request = request_of("abc", 50);
    request->ignore_eos = ignore_eos;
    // Nothing but the end token may be drawn first: its id is even, and 1 modulo 3.
    request->guidance = std::make_shared<ParityGuidance>('z' + 2, 'z' + 2);
    engine.submit(std::move(request), std::make_unique<AnswerSink>(answer));
    REQUIRE(answer.wait_for_end());
    REQUIRE(answer.done);
    CHECK(answer.done->best.num_generated_tokens == 1);
    CHECK(answer.done->best.finish_reason == ipc::FinishReason::kEosToken);
  }
}

}  // namespace tgi
