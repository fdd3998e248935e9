// The slot table: histories for the penalties, tokens fed back, block tables.
#include "engine/cpu/slot_table.h"

#include <algorithm>
#include <map>

#include "tests/catch.h"

namespace tgi {
namespace {

constexpr SlotLayout kLayout{.num_slots = 3,
                             .max_blocks_per_slot = 2,
                             .max_batch_tokens = 8,
                             .vocab_size = 100,
                             .block_size = 16};

Batch start(int32_t slot,
            std::span<const int32_t> ids,
            int32_t num_prompt_tokens,
            float penalty = 1.5F) {
  Batch batch;
  batch.clear();
  batch.slot_starts.push_back({.slot = slot,
                               .sampling = {.repetition_penalty = penalty},
                               .token_ids = ids,
                               .num_prompt_tokens = num_prompt_tokens});
  return batch;
}

std::map<int32_t, int32_t> counts(const SlotTable& table, int32_t slot) {
  std::map<int32_t, int32_t> out;
  for (const TokenCount& count : table.history(slot)) {
    CHECK(out.emplace(count.id, count.output_count).second);  // each id once
  }
  return out;
}

using Counts = std::map<int32_t, int32_t>;

}  // namespace

TEST_CASE("prompt ids are known with no count, output ids are counted") {
  SlotTable table(kLayout);
  const std::vector<int32_t> ids = {5, 9, 5, 7, 9, 9};
  table.apply(start(1, ids, 3));
  CHECK(counts(table, 1) == Counts{{5, 0}, {9, 2}, {7, 1}});
  CHECK(table.last_token(1) == 9);
  table.record(1, 5);
  table.record(1, 42);
  table.record(1, 42);
  CHECK(counts(table, 1) == Counts{{5, 1}, {9, 2}, {7, 1}, {42, 2}});
  CHECK(table.last_token(1) == 42);
  CHECK(table.resolve(-2) == 42);
  CHECK(table.resolve(17) == 17);
}

TEST_CASE("a new sequence in a slot starts from nothing") {
  SlotTable table(kLayout);
  const std::vector<int32_t> first = {1, 2, 3};
  table.apply(start(0, first, 1));
  const std::vector<int32_t> second = {3, 4};
  table.apply(start(0, second, 2));
  CHECK(counts(table, 0) == Counts{{3, 0}, {4, 0}});
}

TEST_CASE("a slot keeps its sequence's settings until another sequence starts in it") {
  SlotTable table(kLayout);
  const std::vector<int32_t> ids = {1, 2};
  Batch batch = start(0, ids, 1);
  batch.slot_starts[0].sampling.seed = 77;
  batch.slot_starts[0].sampling.logit_bias = {{.id = 5, .bias = -100}, {.id = 99, .bias = 2.5F}};
  table.apply(batch);
  table.apply(start(1, ids, 1));
  batch.slot_starts[0].sampling.logit_bias.clear();  // the table has its own
  CHECK(table.sampling(0).seed == 77);
  REQUIRE(table.sampling(0).logit_bias.size() == 2);
  CHECK(table.sampling(0).logit_bias[0].id == 5);
  CHECK(table.sampling(0).logit_bias[0].bias == -100);
  CHECK(table.sampling(0).logit_bias[1].bias == 2.5F);
  CHECK(table.sampling(1).logit_bias.empty());
  table.apply(start(0, ids, 1));
  CHECK(table.sampling(0).logit_bias.empty());
}

TEST_CASE("slots without penalties keep no history") {
  SlotTable table(kLayout);
  const std::vector<int32_t> ids = {1, 2, 3};
  table.apply(start(2, ids, 1, 1.0F));
  table.record(2, 8);
  CHECK(table.history(2).empty());
  CHECK(table.last_token(2) == 8);
}

TEST_CASE("a context of distinct ids fills the history and one more token is no harm") {
  SlotTable table(kLayout);
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 32; ++i) ids.push_back(i);
  table.apply(start(0, ids, 32));
  table.record(0, 90);
  table.record(0, 91);  // past the context: nothing will be sampled after it
  CHECK(table.history(0).size() == 33);
  const std::vector<int32_t> other = {1};
  table.apply(start(1, other, 1));
  CHECK(counts(table, 1) == Counts{{1, 0}});
}

TEST_CASE("block appends land in their slot's table") {
  SlotTable table(kLayout);
  Batch batch;
  batch.clear();
  batch.block_appends = {{.slot = 1, .index = 1, .block = 12}, {.slot = 2, .index = 0, .block = 5}};
  table.apply(batch);
  CHECK(table.block_table(1, 0)[1] == 12);
  CHECK(table.block_table(2, 0)[0] == 5);
}

}  // namespace tgi
