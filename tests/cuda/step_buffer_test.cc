// What a step tells the device: padding, bounds, and what is copied.
#include "cuda/step_buffer.h"

#include <cstring>
#include <vector>

#include "cuda/step_graphs.h"
#include "tests/catch.h"

namespace tgi::cuda {
namespace {

constexpr SlotLayout kSlots = {.num_slots = 6,
                               .max_blocks_per_slot = 8,
                               .max_batch_tokens = 40,
                               .vocab_size = 100,
                               .block_size = 16};
constexpr AttentionPlanOptions kPlan = {.num_kv_heads = 2, .num_blocks = 5};

struct Host {
  StepCapacity capacity = StepCapacity::of(kSlots, kPlan);
  std::vector<std::byte> bytes =
      std::vector<std::byte>(StepArrays::at(nullptr, capacity).size_bytes);
  StepArrays arrays = StepArrays::at(bytes.data(), capacity);
  AttentionPlan plan;
};

// Slot 3 prefills 5 of a context of 25, slots 1 and 4 decode.
Batch mixed_batch() {
  Batch batch;
  batch.clear();
  batch.token_ids = {-2, 50, 51, 52, 53, 54, -5};
  batch.positions = {9, 20, 21, 22, 23, 24, 70};
  batch.slots = {1, 3, 4};
  batch.cu_seqlens_q = {0, 1, 6, 7};
  batch.context_lens = {10, 25, 71};
  batch.sample_rows = {{.row = 0, .slot = 1, .position = 10},
                       {.row = 6, .slot = 4, .position = 71}};
  batch.score_rows = {{.row = 2, .target_id = 77, .num_top = 3}};
  batch.block_appends = {{.slot = 3, .index = 1, .block = 12}};
  return batch;
}

}  // namespace

TEST_CASE("a step's rows say where each token and each wanted logit belongs") {
  Host host;
  const Batch batch = mixed_batch();
  const size_t copied = fill_step(batch, {.num_tokens = 7, .num_logit_rows = 3}, kPlan,
                                  host.capacity, host.plan, host.arrays);
  const StepArrays& step = host.arrays;
  CHECK(step.tokens[0].token_id == -2);
  CHECK(step.tokens[0].context_index == 9);
  CHECK(step.tokens[0].slot == 1);
  CHECK(step.tokens[3].token_id == 52);
  CHECK(step.tokens[3].slot == 3);
  CHECK(step.tokens[3].context_index == 22);
  CHECK(step.tokens[6].position == 70);
  CHECK(step.logit_rows[1].row == 6);
  CHECK(step.logit_rows[1].position == 71);
  CHECK(step.logit_rows[2].slot == -1);
  CHECK(step.logit_rows[2].target_id == 77);
  CHECK(step.logit_rows[2].num_top == 3);
  CHECK(step.sequences[1].num_rows == 5);
  CHECK(step.sequences[1].first_row == 1);
  CHECK(step.sequences[2].context_len == 71);
  CHECK(*step.num_merges == static_cast<int32_t>(host.plan.merges.size()));
  CHECK(step.appends[0].block == 12);
  CHECK(copied <= host.bytes.size());
  const auto* const end = reinterpret_cast<const std::byte*>(step.appends + 1);
  CHECK(copied == static_cast<size_t>(end - host.bytes.data()));
}

TEST_CASE("padding rows belong to nobody's slot") {
  Host host;
  Batch batch;
  batch.clear();
  for (int32_t slot = 0; slot < 3; ++slot) {
    batch.token_ids.push_back(-1 - slot);
    batch.positions.push_back(5);
    batch.slots.push_back(slot);
    batch.cu_seqlens_q.push_back(slot + 1);
    batch.context_lens.push_back(6);
    batch.sample_rows.push_back({.row = slot, .slot = slot, .position = 6});
  }
  std::memset(host.bytes.data(), 0x7f, host.bytes.size());
  (void)fill_step(batch, {.num_tokens = 4, .num_logit_rows = 4, .num_sequences = 4}, kPlan,
                  host.capacity, host.plan, host.arrays);
  CHECK(host.arrays.tokens[3].slot == kSlots.num_slots);
  CHECK(host.arrays.tokens[3].token_id == 0);
  CHECK(host.arrays.tokens[3].context_index == 0);
  CHECK(host.arrays.logit_rows[3].slot == kSlots.num_slots);
  CHECK(host.arrays.logit_rows[3].row == 0);
  CHECK(host.plan.tiles.empty());
  // Each is a sequence of one token, that begins, for layers with a state.
  const SequenceRows& nobody = host.arrays.sequences[3];
  CHECK(nobody.slot == kSlots.num_slots);
  CHECK(nobody.first_row == 3);
  CHECK(nobody.num_rows == 1);
  CHECK(nobody.context_len == 1);
}

TEST_CASE("arrays of a step lie apart, each aligned, for any capacity") {
  Host host;
  const StepArrays& step = host.arrays;
  const std::vector<const void*> in_order = {
      step.tokens, step.logit_rows, step.sequences, step.items,  step.block_begin,
      step.merges, step.num_merges, step.tiles,     step.starts, step.appends};
  for (size_t i = 1; i < in_order.size(); ++i) CHECK(in_order[i - 1] < in_order[i]);
  const StepArrays counted = StepArrays::at(nullptr, host.capacity);
  for (const void* const each :
       {static_cast<const void*>(counted.sequences), static_cast<const void*>(counted.items),
        static_cast<const void*>(counted.appends)}) {
    CHECK(reinterpret_cast<uintptr_t>(each) % 256 == 0);
  }
}

TEST_CASE("buckets of captured steps cover every size up to the most, closely") {
  for (const int32_t most : {1, 3, 64, 100, 256, 512}) {
    int32_t before = 0;
    for (int32_t rows = 1; rows <= most; ++rows) {
      const int32_t bucket = graph_bucket(rows, most);
      INFO(rows << " of " << most << " in " << bucket);
      CHECK(bucket >= rows);
      CHECK(bucket <= most);
      CHECK(bucket >= before);
      CHECK(graph_bucket(bucket, most) == bucket);
      if (rows > 8) CHECK(static_cast<double>(bucket) < 1.8 * rows);
      before = bucket;
    }
    CHECK(graph_bucket(most + 1, most) == 0);
    CHECK(graph_bucket(0, most) == 0);
  }
}

}  // namespace tgi::cuda
