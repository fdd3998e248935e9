#include "engine/sched/kv_cache.h"

#include <numeric>
#include <random>

#include "tests/catch.h"

namespace tgi::kv_cache_test {
namespace {

std::vector<int32_t> tokens(int32_t count, int32_t first = 0) {
  std::vector<int32_t> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), first * 1000);
  return out;
}

}  // namespace

TEST_CASE("kv cache refuses to grow without losing anything when there is no room") {
  KvCache cache(4, 4);
  KvLease first;
  KvLease second;
  REQUIRE(cache.grow(first, 12));
  CHECK(cache.num_used() == 3);
  CHECK_FALSE(cache.grow(second, 8));
  CHECK(second.num_blocks() == 0);
  CHECK(cache.num_free() == 1);
  first.reset();
  CHECK(cache.grow(second, 8));
  cache.check_integrity();
}

TEST_CASE("kv cache holds freed blocks back until the step that may write them has retired") {
  KvCache cache(4, 4);
  KvLease lease;
  REQUIRE(cache.grow(lease, 16));
  cache.step_submitted(1);
  cache.step_submitted(2);
  lease.reset();
  CHECK(cache.num_free() == 0);
  cache.step_retired(1);
  CHECK(cache.num_free() == 0);
  cache.step_retired(2);
  CHECK(cache.num_free() == 4);
}

TEST_CASE("kv cache counts what comes back when the steps in flight retire") {
  KvCache cache(6, 4);
  const auto prompt = tokens(13);
  KvLease first;
  REQUIRE(cache.grow(first, 13));
  cache.publish(0, prompt, 12, first);
  KvLease second = cache.match(0, prompt, 12);
  CHECK(cache.num_retiring() == 0);
  cache.step_submitted(1);
  CHECK(cache.has_steps_in_flight());
  first.reset();
  CHECK(cache.num_retiring() == 1);  // the second holds the other three
  CHECK(cache.num_used() == 4);
  second.reset();
  CHECK(cache.num_retiring() == 4);
  // Wanted again before they are gone.
  KvLease third = cache.match(0, prompt, 8);
  CHECK(cache.num_retiring() == 2);
  CHECK(cache.num_missing_blocks(third, 20) == 1);
  CHECK(cache.num_missing_blocks(third, 16) == 0);
  cache.check_integrity();
  cache.step_retired(1);
  CHECK_FALSE(cache.has_steps_in_flight());
  CHECK(cache.num_retiring() == 0);
  CHECK(cache.num_used() == 2);
  CHECK(cache.num_cached() == 1);
  CHECK(cache.num_free() == 3);
  cache.check_integrity();
}

TEST_CASE("kv cache takes an unused lease back at once, whatever is in flight") {
  KvCache cache(4, 4);
  const auto prompt = tokens(9);
  KvLease first;
  REQUIRE(cache.grow(first, 9));
  cache.publish(0, prompt, 8, first);
  first.reset();
  CHECK(cache.num_cached() == 2);
  cache.step_submitted(1);
  KvLease looked = cache.match(0, prompt, 8);
  CHECK(cache.num_cached() == 0);
  looked.drop_unused();
  CHECK(looked.num_blocks() == 0);
  CHECK(cache.num_cached() == 2);
  CHECK(cache.num_retiring() == 0);
  cache.check_integrity();
}

TEST_CASE("kv cache lets a lease adopt what a twin has published meanwhile") {
  KvCache cache(16, 4);
  const auto prompt = tokens(13);
  KvLease fast;
  KvLease slow = cache.match(0, prompt, 12);
  CHECK(slow.num_blocks() == 0);
  REQUIRE(cache.grow(fast, 13));
  cache.publish(0, prompt, 12, fast);
  CHECK(cache.extend_match(0, prompt, 12, slow) == 12);
  for (int32_t i = 0; i < slow.length(); ++i) CHECK(slow.block(i, 0) == fast.block(i, 0));
  CHECK(cache.num_used() == 4);
  fast.reset();
  CHECK(cache.num_used() == 3);
  cache.check_integrity();
}

}  // namespace tgi::kv_cache_test
