#include "engine/sched/scheduler.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <numeric>
#include <random>

#include "tests/catch.h"
#include "tests/sched/scheduler_fixture.h"

namespace tgi::scheduler_test {
TEST_CASE("scheduler mixes prefill chunks with decodes under the token budget") {
  Fixture fixture(100, {.max_running = 8, .max_batch_tokens = 10});
  Sequence& early = fixture.add(prompt_of(3), 20);
  fixture.step();
  CHECK(early.num_generated_tokens() == 1);
  Sequence& late = fixture.add(prompt_of(25, 1), 5);
  fixture.submit();
  CHECK(fixture.batch.num_tokens() == 10);
  CHECK(fixture.batch.cu_seqlens_q == std::vector<int32_t>{0, 1, 10});
  CHECK(fixture.batch.context_lens == std::vector<int32_t>{4, 9});
  CHECK(fixture.batch.sample_rows.size() == 1);
  fixture.retire();
  CHECK(late.num_computed_tokens == 9);
  fixture.run_all();
}

TEST_CASE(
    "scheduler preempts the youngest when blocks run out and everyone still gets the right "
    "tokens") {
  Fixture fixture(8, {.max_running = 8, .max_batch_tokens = 64});
  Sequence& oldest = fixture.add(prompt_of(5, 1), 20);
  fixture.add(prompt_of(5, 2), 20);
  fixture.add(prompt_of(5, 3), 20);
  fixture.run_all();
  CHECK(oldest.num_preemptions == 0);
  CHECK(fixture.scheduler.num_preemptions() > 0);
}

TEST_CASE("scheduler keeps what a preempted sequence had computed findable") {
  Fixture fixture(9, {.max_running = 2, .max_batch_tokens = 64});
  Sequence& oldest = fixture.add(prompt_of(13, 1), 12);
  Sequence& youngest = fixture.add(prompt_of(9, 2), 10);
  while (youngest.num_preemptions == 0) fixture.step();
  const int64_t rows_before = fixture.num_rows;
  fixture.scheduler.remove(oldest);
  fixture.step();
  // Only those of some 15 tokens that lay in evicted or partial blocks were computed again.
  CHECK(fixture.num_rows - rows_before <= 9);
  CHECK(youngest.num_computed_tokens >= 12);
}

TEST_CASE("where prefixes are not shared every sequence computes its own prompt") {
  Fixture fixture(100, {.max_running = 8, .max_batch_tokens = 16, .shares_prefixes = false});
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 4; ++i) fixture.add(prompt_of(41), 3, i % 2);
    fixture.run_all();
  }
  CHECK(fixture.num_rows == 2 * 4 * (41 + 2));
  CHECK(fixture.kv_cache.num_cached() == 0);
  for (const auto& sequence : fixture.sequences) CHECK(sequence->num_cached_tokens == 0);
}

TEST_CASE("scheduler computes a prompt shared by concurrent twins only once") {
  Fixture fixture(100, {.max_running = 8, .max_batch_tokens = 16});
  for (int i = 0; i < 4; ++i) fixture.add(prompt_of(41), 3);
  fixture.run_all();
  // 41 tokens once, then each twin's last token, and two decodes each.
  CHECK(fixture.num_rows == 41 + 3 * 1 + 4 * 2);
}

TEST_CASE("scheduler lets the sequences of best_of share their prompt") {
  Fixture fixture(100, {.max_running = 8, .max_batch_tokens = 64});
  for (uint32_t i = 0; i < 4; ++i) fixture.add(prompt_of(18), 2, i);
  fixture.run_all();
  CHECK(fixture.num_rows == 18 + 3 * 2 + 4 * 1);
}

TEST_CASE("scheduler caches generated tokens too, so that the next turn costs only what is new") {
  Fixture fixture(100, {.max_running = 8, .max_batch_tokens = 64});
  Sequence& first = fixture.add(prompt_of(10), 11);
  fixture.run_all();
  auto second_prompt = first.token_ids;
  for (int i = 0; i < 3; ++i) second_prompt.push_back(7);
  Sequence& second = fixture.add(second_prompt, 2);
  fixture.run_all();
  CHECK(second.num_cached_tokens == 20);
}

TEST_CASE("scheduler frees a cancelled sequence's blocks within one step in every phase") {
  Fixture fixture(64, {.max_running = 2, .max_batch_tokens = 8});
  Sequence& decoding = fixture.add(prompt_of(4, 1), 50);
  fixture.step();
  fixture.step();
  Sequence& prefilling = fixture.add(prompt_of(40, 2), 50);
  fixture.step();
  Sequence& queued = fixture.add(prompt_of(4, 3), 50);
  CHECK(fixture.scheduler.num_waiting() == 1);
  CHECK(prefilling.num_computed_tokens < 40);
  for (Sequence* gone : {&queued, &prefilling, &decoding}) fixture.scheduler.remove(*gone);
  CHECK(fixture.kv_cache.num_used() == 0);
  CHECK_FALSE(fixture.submit());
  fixture.kv_cache.check_integrity();
}

TEST_CASE(
    "scheduler lets others run while a slow reader is paused, and takes its blocks if it must") {
  Fixture fixture(8, {.max_running = 4, .max_batch_tokens = 64});
  Sequence& slow = fixture.add(prompt_of(12, 1), 12);
  fixture.step();
  slow.paused = true;
  fixture.add(prompt_of(12, 2), 16);
  for (int i = 0; i < 40; ++i) fixture.step();
  CHECK(fixture.sequences[1]->finished);
  CHECK_FALSE(slow.finished);
  slow.paused = false;
  fixture.run_all();
}

TEST_CASE(
    "scheduler shrinks chunks so that a step stays under the target time while others decode") {
  Fixture fixture(
      1000,
      {.max_running = 4, .max_batch_tokens = 512, .min_chunk_tokens = 16, .target_step_ms = 10});
  Sequence& decoding = fixture.add(prompt_of(300, 1), 50);
  ScheduledStep scheduled;
  REQUIRE(fixture.scheduler.next_batch(fixture.batch, scheduled));
  CHECK(scheduled.num_prefill_tokens == 300);
  fixture.scheduler.observe_step_time(scheduled, 60.0);  // 0.2 ms a token
  std::vector<SampledToken> sampled(1);
  fixture.scheduler.step_retired(scheduled, sampled);
  fixture.add(prompt_of(300, 2), 5);
  REQUIRE(fixture.scheduler.next_batch(fixture.batch, scheduled));
  CHECK(scheduled.num_decode_tokens == 1);
  CHECK(scheduled.num_prefill_tokens == 50);
  CHECK_FALSE(decoding.finished);
}

TEST_CASE(
    "scheduler tells the device whose slot it is with the first tokens, however long they wait") {
  Fixture fixture(3, {.max_running = 2, .max_batch_tokens = 64});
  Sequence& first = fixture.add(prompt_of(9, 1), 50);
  REQUIRE(fixture.submit());
  REQUIRE(fixture.submit());
  fixture.scheduler.remove(first);  // as if its last token had ended it
  fixture.add(prompt_of(9, 2), 2);
  // Admitted, but all blocks are still held for the steps in flight.
  CHECK_FALSE(fixture.submit());
  fixture.retire();
  CHECK_FALSE(fixture.submit());
  fixture.retire();
  REQUIRE(fixture.submit());
  REQUIRE(fixture.batch.slot_starts.size() == 1);
  CHECK(fixture.batch.slot_starts[0].sampling.seed == 1);
  CHECK(fixture.batch.slot_starts[0].token_ids.size() == 9);
  fixture.retire();
  REQUIRE(fixture.submit());
  CHECK(fixture.batch.slot_starts.empty());
  fixture.retire();
  CHECK(fixture.sequences[1]->finished);
}

TEST_CASE("scheduler preempts no more than it takes while freed blocks are held for a step") {
  Fixture fixture(12, {.max_running = 8, .max_batch_tokens = 64});
  std::vector<Sequence*> sequences;
  for (int32_t i = 0; i < 4; ++i) sequences.push_back(&fixture.add(prompt_of(8, i + 1), 12));
  // All want their fourth block in the same step; there are twelve. What the youngest gives back is
  // enough for the others.
  for (int guard = 0; guard < 100 && fixture.scheduler.num_preemptions() == 0; ++guard) {
    while (fixture.in_flight.size() < 2 && fixture.submit()) {
    }
    if (fixture.scheduler.num_preemptions() == 0) fixture.retire();
  }
  CHECK(fixture.scheduler.num_preemptions() == 1);
  CHECK(sequences[3]->num_preemptions == 1);
  CHECK(fixture.scheduler.num_running() == 3);
  fixture.run_all(2);
  CHECK(sequences[0]->num_preemptions == 0);
}

TEST_CASE(
    "scheduler lets a prefill without a block wait for a step in flight, and preempts nobody") {
  Fixture fixture(18, {.max_running = 8, .max_batch_tokens = 32});
  Sequence& prefilling = fixture.add(prompt_of(65, 1), 2);
  fixture.step();
  CHECK(prefilling.num_computed_tokens == 32);
  prefilling.paused = true;
  for (const int32_t length : {15, 7, 3}) fixture.add(prompt_of(length, length), 3);
  REQUIRE(fixture.submit());
  REQUIRE(fixture.submit());
  fixture.retire();
  REQUIRE(fixture.submit());
  fixture.retire();
  // Now all blocks are taken, and the last tokens of the three are in flight.
  CHECK(fixture.kv_cache.num_free() + fixture.kv_cache.num_cached() == 0);
  prefilling.paused = false;
  CHECK_FALSE(fixture.submit());
  CHECK(fixture.scheduler.num_preemptions() == 0);
  fixture.run_all(2);
  CHECK(fixture.scheduler.num_preemptions() == 0);
}

TEST_CASE(
    "scheduler gives every sequence its own tokens over random loads, one or two steps deep, "
    "whatever ends them") {
  for (const size_t depth : {size_t{1}, size_t{2}}) {
    std::mt19937 random(static_cast<uint32_t>(depth));
    for (int round = 0; round < 200; ++round) {
      Fixture fixture(24, {.max_running = static_cast<int32_t>(random() % 6 + 1),
                           .max_batch_tokens = static_cast<int32_t>(random() % 30 + 8)});
      fixture.ends_early = round % 2 == 1;
      for (int i = 0; i < 12; ++i) {
        std::vector<int32_t> prompt;
        for (auto length = random() % 40 + 1; length > 0; --length) {
          prompt.push_back(static_cast<int32_t>(random() % 20 == 0));
        }
        fixture.add(prompt, static_cast<int32_t>(random() % 40 + 1));
        for (auto steps = random() % 4; steps > 0; --steps) {
          while (fixture.in_flight.size() < depth && fixture.submit()) {
          }
          if (!fixture.in_flight.empty()) fixture.retire();
        }
      }
      fixture.run_all(depth);
    }
  }
}

TEST_CASE("scheduler runs windowed groups in no more blocks than one context needs") {
  const KvGroups groups = GENERATE(KvGroups{.num_full = 1, .num_windowed = 2, .window = 8},
                                   KvGroups{.num_full = 0, .num_windowed = 3, .window = 30},
                                   KvGroups{.num_full = 2, .num_windowed = 1, .window = 100});
  const size_t depth = GENERATE(1U, 2U);
  const int num_twins = GENERATE(1, 2, 5);
  INFO(groups.num_full << " full, " << groups.num_windowed << " of window " << groups.window << ", "
                       << num_twins << " twins, depth " << depth);
  const auto blocks = static_cast<int32_t>(groups.blocks_of_context(240, 1, kBlock));
  Fixture fixture(blocks, {.max_running = 8, .max_batch_tokens = 32}, groups);
  std::vector<int32_t> prompt(200);
  std::iota(prompt.begin(), prompt.end(), 0);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < num_twins; ++i) fixture.add(prompt, 40);
    fixture.run_all(depth);
  }
  for (int i = 0; i < 4; ++i) {
    std::iota(prompt.begin(), prompt.end(), i % 2 == 0 ? 0 : 1000 * i);
    fixture.add(prompt, 40);
  }
  fixture.run_all(depth);
}

// A request for hidden states: what comes back for it, by the parts of its prompt.
Request& pooled_request(Fixture& f, int32_t length, std::vector<PooledInput> pooled) {
  std::vector<int32_t> prompt(static_cast<size_t>(length));
  std::iota(prompt.begin(), prompt.end(), 10);
  f.add(std::move(prompt), 0);
  Request& request = *f.requests.back();
  request.pooled = std::move(pooled);
  request.use_prefix_cache = false;
  return request;
}

using PooledRowsOf = PooledInput::Rows;

TEST_CASE("hidden states are asked for where they are, each token row once, and nothing is drawn") {
  Fixture f(32, {.max_running = 4, .max_batch_tokens = 8});
  pooled_request(f, 11,
                 {{PooledRowsOf::kAll, Pooling::kSum},
                  {PooledRowsOf::kFirst, Pooling::kRows},
                  {PooledRowsOf::kLast, Pooling::kRows}});
  REQUIRE(f.submit());
  CHECK(f.batch.sample_rows.empty());
  CHECK(f.batch.kept_rows == std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7});
  REQUIRE(f.batch.pooled_rows.size() == 2);
  CHECK(f.batch.pooled_rows[0].num_rows == 8);
  CHECK(f.batch.pooled_rows[1].row == 0);
  CHECK(f.batch.pooled_rows[1].num_rows == 1);
  CHECK(f.in_flight.front().parts.front().num_pooled == 2);
  f.retire();
  REQUIRE(f.submit());
  CHECK(f.batch.sample_rows.empty());
  CHECK(f.batch.kept_rows == std::vector<int32_t>{0, 1, 2});
  REQUIRE(f.batch.pooled_rows.size() == 2);
  CHECK(f.batch.pooled_rows[0].position == 8);
  CHECK(f.batch.pooled_rows[1].row == 2);
  CHECK(f.batch.pooled_rows[1].position == 10);
  f.retire();
  CHECK(!f.submit());
  f.scheduler.remove(*f.sequences.front());
}

TEST_CASE("of a text whose ends alone are wanted two rows are kept, of one token one") {
  const std::vector<PooledInput> ends = {{PooledRowsOf::kLast, Pooling::kRows},
                                         {PooledRowsOf::kFirst, Pooling::kRows}};
  Fixture f(32, {.max_running = 4, .max_batch_tokens = 16});
  pooled_request(f, 6, ends);
  pooled_request(f, 1, ends);
  REQUIRE(f.submit());
  CHECK(f.batch.kept_rows == std::vector<int32_t>{0, 5, 6});
  REQUIRE(f.batch.pooled_rows.size() == 4);
  CHECK(f.batch.pooled_rows[0].row == 1);
  CHECK(f.batch.pooled_rows[1].row == 0);
  CHECK(f.batch.pooled_rows[2].row == 2);
  CHECK(f.batch.pooled_rows[3].row == 2);
  f.retire();
  for (const auto& sequence : f.sequences) f.scheduler.remove(*sequence);
}

TEST_CASE("a prompt that must be whole waits for a step that has room for all of it, in order") {
  Fixture f(64, {.max_running = 8, .max_batch_tokens = 10, .whole_prompts = true});
  for (const int32_t length : {6, 7, 3, 10, 1}) {
    pooled_request(f, length, {{PooledRowsOf::kAll, Pooling::kSum}});
  }
  std::vector<std::vector<int32_t>> lengths;
  while (f.submit()) {
    std::vector<int32_t>& step = lengths.emplace_back();
    for (const auto& part : f.in_flight.front().parts) {
      CHECK(part.first_token == 0);
      CHECK(part.num_tokens == part.sequence->num_tokens());
      step.push_back(part.num_tokens);
    }
    const ScheduledStep scheduled = f.in_flight.front();
    f.retire();
    for (const auto& part : scheduled.parts) f.scheduler.remove(*part.sequence);
  }
  CHECK(lengths == std::vector<std::vector<int32_t>>{{6}, {7, 3}, {10}, {1}});
}

TEST_CASE("a prompt without an answer ends although its last part is one token") {
  Fixture f(32, {.max_running = 4, .max_batch_tokens = 8});
  std::vector<int32_t> prompt(9, 3);
  f.add(std::move(prompt), 0);
  int num_steps = 0;
  while (!f.sequences.front()->finished && num_steps < 10) {
    REQUIRE(f.submit());
    f.retire();
    ++num_steps;
  }
  CHECK(num_steps == 2);
}

}  // namespace tgi::scheduler_test
