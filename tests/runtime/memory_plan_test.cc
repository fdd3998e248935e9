#include "engine/runtime/memory_plan.h"

#include "base/error.h"
#include "tests/catch.h"

namespace tgi {
namespace {

constexpr int64_t kMiB = 1 << 20;

MemoryRequest machine() {
  return {.available_bytes = 1000 * kMiB,
          .weight_bytes = 400 * kMiB,
          .workspace_bytes = 100 * kMiB,
          .block_bytes = kMiB,
          .block_size = 16,
          .max_positions = 128,
          .kv_cache_bytes = std::nullopt,
          .max_total_tokens = std::nullopt};
}

}  // namespace

TEST_CASE("fewer sequences run where their states would take more than a quarter of what is left") {
  CHECK(automatic_running(256, 80 * kMiB, 0) == 256);
  CHECK(automatic_running(256, 1024 * kMiB, kMiB) == 256);
  CHECK(automatic_running(256, 1023 * kMiB, kMiB) == 255);
  CHECK(automatic_running(256, 80 * kMiB, 3 * kMiB) == 6);
  // The plan says then that it does not fit.
  CHECK(automatic_running(256, 2 * kMiB, kMiB) == 1);
  CHECK(automatic_running(256, -5 * kMiB, kMiB) == 1);
}

TEST_CASE("memory plan gives sixteen contexts by default and no more than half of what is left") {
  CHECK(plan_memory(machine()).num_blocks == 16 * 8);
  MemoryRequest tight = machine();
  tight.max_positions = 100000;
  const PlannedMemory plan = plan_memory(tight);
  CHECK(plan.num_blocks == 500);
  CHECK(plan.max_total_tokens == 500 * 16);
  tight.max_positions = 300 * 16;
  CHECK(plan_memory(tight).max_total_tokens == 300 * 16);
}

TEST_CASE("memory plan gives all that is left of memory that is not shared") {
  MemoryRequest request = machine();
  request.memory_is_shared = false;
  CHECK(plan_memory(request).num_blocks == 500);
  request.kv_cache_bytes = 4 * kMiB;
  CHECK(plan_memory(request).num_blocks == 4);
}

TEST_CASE("memory plan leaves what all that may run could never fill twice") {
  MemoryRequest request = machine();
  request.memory_is_shared = false;
  request.max_running = 3;
  CHECK(plan_memory(request).num_blocks == 2 * 3 * 8);
  CHECK(plan_memory(request).max_total_tokens == 128);
  request.max_running = 256;
  CHECK(plan_memory(request).num_blocks == 500);
  request.kv_cache_bytes = 400 * kMiB;
  request.max_running = 3;
  CHECK(plan_memory(request).num_blocks == 400);
}

TEST_CASE("memory plan of a model without attention has blocks for sixteen contexts, for nothing") {
  for (const bool is_shared : {false, true}) {
    MemoryRequest request = machine();
    request.block_bytes = 0;
    request.memory_is_shared = is_shared;
    const PlannedMemory plan = plan_memory(request);
    CHECK(plan.num_blocks == 16 * 8);
    CHECK(plan.max_total_tokens == 128);
    CHECK(plan.kv_bytes == 0);
    request.kv_cache_bytes = kMiB;
    CHECK(plan_memory(request).num_blocks == 16 * 8);
    request.workspace_bytes = 700 * kMiB;  // states are part of it
    CHECK_THROWS_WITH(plan_memory(request), Catch::Contains("700.0 MiB of workspace"));
  }
}

TEST_CASE("memory plan counts what windowed groups keep of a context") {
  MemoryRequest request = machine();
  request.max_positions = 64000;
  request.max_batch_tokens = 160;
  request.kv_groups = {.num_full = 1, .num_windowed = 4, .window = 1024};
  // 4,000 blocks of the one that keeps all would not fit beside four of 79 that it takes.
  CHECK(request.kv_groups.blocks_of_context(64000, 160, 16) == 4000 + 4 * 79);
  CHECK(request.kv_groups.blocks_of_context(16, 160, 16) == 5);
  CHECK(request.kv_groups.blocks_of_context(1264, 160, 16) == 5 * 79);
  const PlannedMemory plan = plan_memory(request);
  CHECK(plan.num_blocks == 500);
  // Computed one by one: 1 x 204 + 4 x 70 windows and a tile.
  CHECK(plan.max_total_tokens == (500 - 4 * 70) * 16);
  request.max_total_tokens = plan.max_total_tokens;
  CHECK(plan_memory(request).max_total_tokens == plan.max_total_tokens);
  ++*request.max_total_tokens;
  CHECK_THROWS_WITH(plan_memory(request), Catch::Contains("holds only 3520 tokens"));
  request.max_total_tokens.reset();

  request.kv_groups = {.num_full = 0, .num_windowed = 1, .window = 1024};
  CHECK(plan_memory(request).max_total_tokens == 64000);
  request.kv_groups = {.num_full = 1, .num_windowed = 4, .window = 1024};
  request.kv_cache_bytes = 4 * kMiB;
  CHECK_THROWS_WITH(plan_memory(request), Catch::Contains("one block for each group of layers") &&
                                              Catch::Contains("5.0 MiB"));
}

TEST_CASE("memory plan refuses what does not fit, with the numbers") {
  MemoryRequest request = machine();
  request.weight_bytes = 950 * kMiB;
  CHECK_THROWS_WITH(plan_memory(request), Catch::Contains("950.0 MiB of weights") &&
                                              Catch::Contains("1000.0 MiB are available"));
  request = machine();
  request.kv_cache_bytes = 600 * kMiB;
  CHECK_THROWS_WITH(plan_memory(request), Catch::Contains("--kv-cache-memory"));
  request.kv_cache_bytes = 4 * kMiB;
  CHECK(plan_memory(request).max_total_tokens == 64);
  request.max_total_tokens = 100;
  CHECK_THROWS_AS(plan_memory(request), Error);
  request.kv_cache_bytes = kMiB / 2;
  CHECK_THROWS_AS(plan_memory(request), Error);
}

}  // namespace tgi
