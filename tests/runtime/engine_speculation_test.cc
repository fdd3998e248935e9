// The engine on fake workers with drafts and without: everybody is told the same, whatever ends the
// answers, and drafts leave nothing behind.
#include <random>

#include "engine/draft/ngram_drafter.h"
#include "tests/catch.h"
#include "tests/runtime/engine_fixture.h"
#include "tests/runtime/parity_guidance.h"

namespace tgi {
namespace {

constexpr int32_t kMaxDrafts = 5;

EngineOptions drafting_engine() {
  EngineOptions options = small_engine();
  // The fake device's time is the machine's.
  options.drafts_at_any_price = true;
  options.eos_token_ids = {'e'};
  return options;
}

std::unique_ptr<Request> any_request(std::mt19937& random, int32_t max_drafts) {
  std::string prompt(random() % 40 + 1, 'p');
  for (char& c : prompt) c = static_cast<char>('a' + random() % 4);
  auto request = request_of(prompt, static_cast<int32_t>(random() % 60 + 1));
  request->max_drafts = max_drafts;
  request->details = true;
  request->sampling.do_sample = random() % 2 == 0;
  request->sampling.seed = random();
  request->ignore_eos = random() % 3 > 0;
  if (request->sampling.do_sample && random() % 4 == 0) request->best_of = 3;
  if (random() % 4 == 0) request->stop = {"ab", "c"};
  if (random() % 4 == 0) request->guidance = std::make_shared<ParityGuidance>('a', 'z');
  return request;
}

struct Told {
  std::string text;
  std::string others;
  ipc::FinishReason reason{};
  std::vector<int32_t> ids;
  bool operator==(const Told&) const = default;
};

std::vector<Told> answers_of(const EngineOptions& options,
                             const FakeOptions& fake,
                             int32_t max_drafts,
                             int count,
                             ipc::Counters& counters) {
  Engine engine(options, std::make_unique<FakeWorkers>(fake), kTokenizer,
                std::make_unique<NgramDrafter>());
  std::mt19937 random(17);
  std::vector<std::unique_ptr<Answer>> answers;
  for (int i = 0; i < count; ++i) {
    answers.push_back(std::make_unique<Answer>());
    engine.submit(any_request(random, max_drafts), std::make_unique<AnswerSink>(*answers.back()));
  }
  std::vector<Told> out;
  for (const auto& answer : answers) {
    REQUIRE(answer->wait_for_end());
    REQUIRE(answer->done);
    Told told{.text = answer->done->best.text,
              .others{},
              .reason = answer->done->best.finish_reason,
              .ids{}};
    for (const auto& other : answer->done->others) told.others += other.text + "|";
    int64_t num_skipped = 0;
    for (const ipc::TokenInfo& token : answer->done->best.tokens) {
      told.ids.push_back(token.id);
      num_skipped += token.skipped ? 1 : 0;
    }
    CHECK(num_skipped == answer->done->best.num_skipped_tokens);
    out.push_back(std::move(told));
  }
  wait_until_idle(engine);
  CHECK(engine.stats().num_blocks_used == 0);
  counters = engine.stats().counters;
  return out;
}

}  // namespace

TEST_CASE(
    "500 mixed requests are told the same with drafts and without, at any depth and pressure") {
  for (const int depth : {1, 2}) {
    for (const int32_t num_blocks : {200, 40}) {  // with the fewer, sequences are preempted
      INFO(depth << " " << num_blocks);
      EngineOptions options = drafting_engine();
      options.num_blocks = num_blocks;
      const FakeOptions fake{.depth = depth, .memory = 1};
      ipc::Counters without;
      ipc::Counters with;
      const auto wanted = answers_of(options, fake, 0, 500, without);
      const auto told = answers_of(options, fake, kMaxDrafts, 500, with);
      for (size_t i = 0; i < told.size(); ++i) {
        INFO("request " << i << ": " << wanted[i].text << " / " << told[i].text);
        CHECK(told[i] == wanted[i]);
      }
      CHECK(without.num_drafted_tokens == 0);
      CHECK(with.num_skipped_tokens > 100);
      CHECK(with.num_drafted_tokens >= with.num_skipped_tokens);
      CHECK(with.num_generated_tokens == without.num_generated_tokens);
      CHECK(with.num_steps < without.num_steps);
    }
  }
}

TEST_CASE("a request that wants no drafts has none beside others that do") {
  Engine engine(drafting_engine(), std::make_unique<FakeWorkers>(FakeOptions{.memory = 1}),
                kTokenizer, std::make_unique<NgramDrafter>());
  std::vector<std::unique_ptr<Answer>> answers;
  for (const int32_t max_drafts : {0, kMaxDrafts}) {
    auto request = request_of("abcabcabc", 200);
    request->max_drafts = max_drafts;
    request->ignore_eos = true;
    answers.push_back(std::make_unique<Answer>());
    engine.submit(std::move(request), std::make_unique<AnswerSink>(*answers.back()));
  }
  for (const auto& answer : answers) REQUIRE(answer->wait_for_end());
  CHECK(answers[0]->done->best.num_skipped_tokens == 0);
  CHECK(answers[1]->done->best.num_skipped_tokens > 50);
  CHECK(answers[0]->streamed == answers[1]->streamed);
}

TEST_CASE("logits that are not finite behind drafts end the request where they would without") {
  for (const int32_t max_drafts : {0, kMaxDrafts}) {
    EngineOptions options = drafting_engine();
    options.eos_token_ids = {};
    // The first 'x' poisons what follows it.
    Engine engine(options, std::make_unique<FakeWorkers>(FakeOptions{.memory = 1, .poison = 'x'}),
                  kTokenizer, std::make_unique<NgramDrafter>());
    std::vector<int> num_events;
    for (int i = 0; i < 30; ++i) {
      Answer answer;
      auto request = request_of(std::string(static_cast<size_t>(i % 7 + 1), 'a') + "bcd", 300);
      request->max_drafts = max_drafts;
      request->sampling.do_sample = true;
      request->sampling.seed = static_cast<uint64_t>(i);
      engine.submit(std::move(request), std::make_unique<AnswerSink>(answer));
      REQUIRE(answer.wait_for_end());
      if (answer.error) CHECK(answer.error->code() == Code::kNotFinite);
      num_events.push_back(answer.num_events);
      wait_until_idle(engine);
    }
    static std::vector<int> without;
    if (max_drafts == 0) without = num_events;
    CHECK(num_events == without);
    CHECK(std::count(num_events.begin(), num_events.end(), 300) < 30);
  }
}

}  // namespace tgi
