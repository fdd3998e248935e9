// Sequences get the tokens that they get without drafts, whatever is drafted and however tight it
// is, and in fewer steps where they repeat themselves.
#include <random>

#include "engine/draft/ngram_drafter.h"
#include "tests/catch.h"
#include "tests/sched/scheduler_fixture.h"

namespace tgi::speculation_test {
namespace {

// Drafts ids at random, from time to time more of the text than it has.
class WildDrafter final : public Drafter {
 public:
  std::unique_ptr<Memory> start() override { return std::make_unique<Memory>(); }
  bool is_free() const override { return true; }
  void draft(std::span<const Wanted> wanted) override {
    for (const Wanted& each : wanted) {
      each.draft_ids->clear();
      const auto count =
          static_cast<int32_t>(random_() % static_cast<uint32_t>(each.max_tokens + 1));
      for (int32_t i = 0; i < count; ++i)
        each.draft_ids->push_back(static_cast<int32_t>(random_() % 5));
    }
  }

 private:
  std::mt19937 random_{3};
};

// Reads what the last token was drawn from: by the fixture, where it stands and what it is.
class ReadingDrafter final : public Drafter {
 public:
  explicit ReadingDrafter(int64_t& num_read) : num_read_(num_read) {}
  std::unique_ptr<Memory> start() override { return std::make_unique<Memory>(); }
  bool reads_hidden() const override { return true; }
  void draft(std::span<const Wanted> wanted) override {
    for (const Wanted& each : wanted) {
      each.draft_ids->clear();
      // The last token of a prompt, where it is left for a step of its own, was not drawn.
      if (each.hidden.empty()) continue;
      REQUIRE(each.hidden.size() == 2);
      CHECK(each.hidden[0] == static_cast<float>(each.token_ids.size() - 1));
      CHECK(each.hidden[1] == static_cast<float>(each.token_ids.back()));
      for (int32_t i = 0; i < each.max_tokens; ++i) {
        each.draft_ids->push_back(static_cast<int32_t>(random_() % 5));
      }
      ++num_read_;
    }
  }

 private:
  int64_t& num_read_;
  std::mt19937 random_{4};
};

Speculator ngrams() {
  return Speculator(std::make_unique<NgramDrafter>(), {});
}

void add_many(Fixture& fixture, int32_t count, int32_t longest) {
  std::mt19937 random(9);
  for (int32_t i = 0; i < count; ++i) {
    std::vector<int32_t> prompt;
    for (auto length = random() % 12 + 1; length > 0; --length)
      prompt.push_back(static_cast<int32_t>(random() % 5));
    const auto num_tokens = static_cast<int32_t>(random() % static_cast<uint32_t>(longest)) + 1;
    fixture.add(prompt, num_tokens);
    if (i % 5 == 0) fixture.add({}, 0, 1);  // best_of
  }
}

}  // namespace

TEST_CASE("sequences that repeat themselves are done in fewer steps, with the same tokens") {
  const auto num_steps = [](int32_t max_drafts) {
    Speculator speculator = ngrams();
    Fixture fixture(200, {.max_running = 4, .max_batch_tokens = 64}, {}, &speculator);
    fixture.memory = 1;
    fixture.max_drafts = max_drafts;
    fixture.add({1, 2, 3}, 200);
    int count = 0;
    while (fixture.submit()) {
      fixture.retire();
      ++count;
    }
    CHECK(speculator.counts().num_accepted >= 200 - count);
    CHECK((max_drafts > 0) == (speculator.counts().num_drafted > 0));
    fixture.run_all();
    return count;
  };
  CHECK(num_steps(0) == 200);
  CHECK(num_steps(4) < 120);
}

TEST_CASE("drafts of every kind leave every sequence its own tokens, at any depth and pressure") {
  for (const bool is_wild : {false, true}) {
    for (const size_t depth : {1, 2, 3}) {
      for (const int32_t num_blocks : {300, 26}) {
        for (const bool is_windowed : {false, true}) {
          INFO(is_wild << " " << depth << " " << num_blocks << " " << is_windowed);
          Speculator speculator =
              is_wild ? Speculator(std::make_unique<WildDrafter>(), {.eos_token_ids = {kEos}})
                      : ngrams();
          const KvGroups groups =
              is_windowed ? KvGroups{.num_full = 1, .num_windowed = 1, .window = 6} : KvGroups{};
          Fixture fixture(num_blocks, {.max_running = 6, .max_batch_tokens = 24}, groups,
                          &speculator);
          fixture.memory = is_wild ? 0 : 2;
          fixture.max_drafts = 5;
          fixture.ends_early = is_wild;
          add_many(fixture, 60, 40);
          fixture.run_all(depth);
          CHECK(speculator.counts().num_drafted > 0);
          if (!is_wild) CHECK(speculator.counts().num_accepted > 0);
        }
      }
    }
  }
}

TEST_CASE(
    "a drafter that asks for it is told what the last token was drawn from, whatever happens") {
  for (const size_t depth : {1, 2, 3}) {
    for (const int32_t num_blocks : {300, 26}) {
      INFO(depth << " " << num_blocks);
      int64_t num_read = 0;
      Speculator speculator(std::make_unique<ReadingDrafter>(num_read), {.at_any_price = true});
      Fixture fixture(num_blocks, {.max_running = 6, .max_batch_tokens = 24}, {}, &speculator);
      fixture.max_drafts = 3;
      add_many(fixture, 60, 40);
      fixture.run_all(depth);
      CHECK(num_read > 100);
      if (num_blocks < 100) CHECK(fixture.scheduler.num_preemptions() > 0);
    }
  }
}

TEST_CASE("a sequence whose drafts are out gets no other step until they are verified") {
  Speculator speculator = ngrams();
  Fixture fixture(100, {.max_running = 2, .max_batch_tokens = 32}, {}, &speculator);
  fixture.memory = 1;
  fixture.max_drafts = 3;
  Sequence& sequence = fixture.add({1, 2, 3, 1, 2, 3, 1, 2}, 60);
  bool has_drafted = false;
  while (!sequence.finished) {
    while (fixture.in_flight.size() < 2 && fixture.submit()) {
      const bool is_out = !sequence.draft_ids.empty();
      has_drafted = has_drafted || is_out;
      if (is_out) CHECK_FALSE(fixture.submit());
    }
    fixture.retire();
  }
  CHECK(has_drafted);
  fixture.run_all(2);
}

TEST_CASE("nothing that was not drawn becomes findable") {
  Speculator speculator(std::make_unique<WildDrafter>(), {.at_any_price = true});
  Fixture fixture(200, {.max_running = 1, .max_batch_tokens = 64}, {}, &speculator);
  fixture.max_drafts = 8;
  Sequence& sequence = fixture.add({1, 2, 3}, 60);
  fixture.run_all();
  CHECK(speculator.counts().num_drafted > 20);
  // All that is cached is of its tokens: as many blocks as they fill.
  const int32_t num_computed = sequence.num_tokens() - 1;
  CHECK(fixture.kv_cache.num_cached() == num_computed / kBlock);
  CHECK(fixture.kv_cache.num_matching_tokens(0, sequence.token_ids) ==
        num_computed / kBlock * kBlock);
}

TEST_CASE("drafts stop where a row costs as much as a step, and are tried where it costs little") {
  for (const bool is_dear : {true, false}) {
    Speculator speculator(std::make_unique<WildDrafter>(), {});
    Fixture fixture(400, {.max_running = 1, .max_batch_tokens = 64}, {}, &speculator);
    fixture.max_drafts = 8;
    fixture.add({1, 2, 3}, 600);
    int64_t num_first = 0;
    for (int step = 0; fixture.submit(); ++step) {
      const ScheduledStep scheduled = fixture.in_flight.front();
      const int32_t rows = scheduled.num_decode_tokens;
      fixture.scheduler.observe_step_time(scheduled, is_dear ? rows : 10 + 0.01 * rows);
      fixture.retire();
      if (step == 100) num_first = speculator.counts().num_drafted;
    }
    fixture.run_all();
    const int64_t later = speculator.counts().num_drafted - num_first;
    // Of a guess in five that is right a cheap row is worth it.
    if (is_dear) CHECK(later <= 20);
    if (!is_dear) CHECK(later > 100);
  }
}

}  // namespace tgi::speculation_test
