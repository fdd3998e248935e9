#include "engine/sched/radix_cache.h"

#include <numeric>
#include <random>

#include "tests/catch.h"

namespace tgi::radix_cache_test {
namespace {

constexpr int32_t kBlock = 4;

// `count` blocks of tokens starting with `first`, so that sequences with equal `first` agree.
std::vector<int32_t> tokens(int32_t count, int32_t first = 0) {
  std::vector<int32_t> out(static_cast<size_t>(count * kBlock));
  std::iota(out.begin(), out.end(), first * 1000);
  return out;
}

struct Fixture {
  BlockAllocator allocator{32};
  RadixCache cache{kBlock, {}, allocator};

  std::vector<int32_t> take(int32_t count) {
    std::vector<int32_t> blocks;
    for (int32_t i = 0; i < count; ++i) blocks.push_back(allocator.take().value());
    return blocks;
  }
  void release(const std::vector<int32_t>& blocks) {
    for (const int32_t block : blocks) allocator.release(block);
  }
  // Publishes and lets go, as a finished sequence does.
  std::vector<int32_t> insert(const std::vector<int32_t>& token_ids) {
    const auto count = static_cast<int32_t>(token_ids.size()) / kBlock;
    RadixCache::Cursor cursor;
    const auto blocks = take(count);
    cache.publish(0, token_ids, blocks, count, cursor);
    release(blocks);
    cache.check_integrity();
    allocator.check_integrity();
    return blocks;
  }
  std::vector<int32_t> match(const std::vector<int32_t>& token_ids, int32_t max_blocks = 1000) {
    std::vector<int32_t> blocks;
    cache.match(0, token_ids, max_blocks, blocks);
    release(blocks);
    return blocks;
  }
};

}  // namespace

TEST_CASE("radix cache gives back exactly the blocks of the longest whole-block prefix") {
  Fixture fixture;
  const auto blocks = fixture.insert(tokens(3));
  CHECK(fixture.match(tokens(3)) == blocks);
  CHECK(fixture.match(tokens(5)) == blocks);
  CHECK(fixture.match(tokens(3), 2) == std::vector(blocks.begin(), blocks.begin() + 2));
  auto partial = tokens(3);
  partial.resize(partial.size() - 1);
  CHECK(fixture.match(partial).size() == 2);
  partial[5] = -7;
  CHECK(fixture.match(partial).size() == 1);
  CHECK(fixture.match(tokens(3, 9)).empty());
}

TEST_CASE("radix cache keeps adapters apart") {
  Fixture fixture;
  fixture.insert(tokens(2));
  std::vector<int32_t> blocks;
  fixture.cache.match(7, tokens(2), 100, blocks);
  CHECK(blocks.empty());
}

TEST_CASE("radix cache forgets one adapter's prefixes and no other's") {
  Fixture fixture;
  fixture.insert(tokens(3));
  const auto publish = [&](int64_t adapter, const std::vector<int32_t>& blocks) {
    RadixCache::Cursor cursor;
    const auto count = static_cast<int32_t>(blocks.size());
    fixture.cache.publish(adapter, tokens(count), blocks, count, cursor);
  };
  const auto done = fixture.take(4);
  publish(7, done);
  fixture.release(done);
  const auto running = fixture.take(2);
  publish(8, running);
  CHECK(fixture.allocator.num_cached_only() == 7);
  CHECK(fixture.cache.forget(7));
  CHECK(fixture.cache.forget(9));  // nobody knows it
  CHECK_FALSE(fixture.cache.forget(8));
  fixture.release(running);
  CHECK(fixture.cache.forget(8));
  fixture.cache.check_integrity();
  fixture.allocator.check_integrity();
  CHECK(fixture.allocator.num_cached_only() == 3);
  CHECK(fixture.match(tokens(3)).size() == 3);
  CHECK(fixture.cache.num_matching_blocks(7, tokens(4)) == 0);
}

TEST_CASE("radix cache splits a run where two sequences part and keeps both") {
  Fixture fixture;
  auto left = tokens(4);
  auto right = tokens(4);
  right[2 * kBlock + 1] = 77;
  const auto left_blocks = fixture.insert(left);
  const auto right_blocks = fixture.insert(right);
  // What both have is the one's who computed it last: nobody leased the other's.
  CHECK(fixture.match(right) == right_blocks);
  const auto matched = fixture.match(left);
  CHECK(std::vector(matched.begin(), matched.begin() + 2) ==
        std::vector(right_blocks.begin(), right_blocks.begin() + 2));
  CHECK(std::vector(matched.begin() + 2, matched.end()) ==
        std::vector(left_blocks.begin() + 2, left_blocks.end()));
  // The two blocks that the second one computed again are free, not lost.
  CHECK(fixture.allocator.num_cached_only() == 6);
}

TEST_CASE("radix cache shares a running sequence's blocks as they are published") {
  Fixture fixture;
  const auto all = tokens(4);
  const auto blocks = fixture.take(4);
  RadixCache::Cursor cursor;
  for (int32_t count = 1; count <= 4; ++count) {
    fixture.cache.publish(0, all, blocks, count, cursor);
    CHECK(static_cast<int32_t>(fixture.match(all).size()) == count);
  }
  CHECK(fixture.cache.evict(4) == 0);
  fixture.release(blocks);
  CHECK(fixture.cache.evict(100) == 4);
  CHECK(fixture.allocator.num_free() == 32);
}

TEST_CASE("radix cache evicts the coldest tail first and never a block under one in use") {
  Fixture fixture;
  fixture.insert(tokens(3, 1));
  fixture.insert(tokens(3, 2));
  CHECK(fixture.match(tokens(3, 1)).size() == 3);  // 2 is now the colder
  CHECK(fixture.cache.evict(2) == 2);
  CHECK(fixture.match(tokens(3, 2)).size() == 1);
  CHECK(fixture.match(tokens(3, 1)).size() == 3);

  std::vector<int32_t> held;
  fixture.cache.match(0, tokens(3, 1), 2, held);
  CHECK(fixture.cache.evict(100) == 2);
  CHECK(fixture.match(tokens(3, 1)).size() == 2);
  fixture.release(held);
  CHECK(fixture.cache.evict(100) == 2);
  fixture.cache.check_integrity();
}

TEST_CASE("radix cache heals a cursor whose node was split, evicted or grown by another") {
  Fixture fixture;
  const auto mine = tokens(6);
  const auto my_blocks = fixture.take(6);
  RadixCache::Cursor cursor;
  fixture.cache.publish(0, mine, my_blocks, 4, cursor);
  auto other = tokens(4);
  other[kBlock] = -1;
  fixture.insert(other);  // splits my run after its first block
  fixture.cache.publish(0, mine, my_blocks, 5, cursor);
  CHECK(fixture.match(mine).size() == 5);

  // A cursor on blocks of a twin that finished and was evicted.
  const auto twin_tokens = tokens(3, 5);
  fixture.insert(twin_tokens);
  const auto duplicate = fixture.take(3);
  RadixCache::Cursor stale;
  fixture.cache.publish(0, twin_tokens, duplicate, 2, stale);
  CHECK(fixture.cache.evict(100) > 0);
  auto regrown = tokens(3, 5);
  regrown[1] = -3;
  fixture.insert(regrown);
  fixture.cache.publish(0, twin_tokens, duplicate, 3, stale);
  fixture.cache.check_integrity();
  CHECK(fixture.match(twin_tokens) == duplicate);
}

TEST_CASE("radix cache agrees with a plain map of prefixes over a random walk") {
  Fixture fixture;
  std::mt19937 random(1);
  struct Running {
    std::vector<int32_t> token_ids, blocks;
    int32_t num_published = 0;
    RadixCache::Cursor cursor;
  };
  std::vector<Running> running;
  for (int step = 0; step < 10000; ++step) {
    const auto action = random() % 10;
    if (action < 4 && running.size() < 6) {
      Running fresh;
      for (auto length = random() % 7 * kBlock + random() % kBlock + 1; length > 0; --length) {
        fresh.token_ids.push_back(static_cast<int32_t>(random() % 2));
      }
      fresh.cursor = fixture.cache.match(0, fresh.token_ids, 100, fresh.blocks);
      fresh.num_published = static_cast<int32_t>(fresh.blocks.size());
      REQUIRE(fresh.num_published == fixture.cache.num_matching_blocks(0, fresh.token_ids));
      running.push_back(std::move(fresh));
    } else if (action < 7 && !running.empty()) {
      Running& grown = running[random() % running.size()];
      const auto wanted = static_cast<int32_t>(grown.token_ids.size()) / kBlock;
      if (static_cast<int32_t>(grown.blocks.size()) < wanted) {
        if (fixture.allocator.num_free() == 0) fixture.cache.evict(1);
        if (const auto block = fixture.allocator.take()) grown.blocks.push_back(*block);
      }
      grown.num_published = static_cast<int32_t>(grown.blocks.size());
      fixture.cache.publish(0, grown.token_ids, grown.blocks, grown.num_published, grown.cursor);
      REQUIRE(fixture.cache.num_matching_blocks(0, grown.token_ids) >= grown.num_published);
    } else if (action < 9 && !running.empty()) {
      const size_t index = random() % running.size();
      fixture.release(running[index].blocks);
      running.erase(running.begin() + static_cast<ptrdiff_t>(index));
    } else {
      fixture.cache.evict(static_cast<int32_t>(random() % 5));
    }
    if (step % 16 == 0) {
      fixture.cache.check_integrity();
      fixture.allocator.check_integrity();
    }
  }
  for (const Running& left : running) fixture.release(left.blocks);
  fixture.cache.clear();
  CHECK(fixture.allocator.num_free() == 32);
}

}  // namespace tgi::radix_cache_test
