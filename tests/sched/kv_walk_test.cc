// Random operations on the KV cache: its books stay exact, and what a lease is given holds what its
// sequence would have computed.
#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "engine/sched/kv_cache.h"
#include "tests/catch.h"

namespace tgi::kv_walk_test {
namespace {

constexpr int32_t kTokensPerBlock = 4;

struct Live {
  std::vector<int32_t> token_ids;
  int32_t num_computed = 0;
  KvLease lease;

  Live() = default;
  Live(Live&&) = default;
  Live& operator=(Live&&) = default;
};

class Walk {
 public:
  Walk(int32_t num_blocks, const KvGroups& groups, uint32_t seed)
      : cache_(num_blocks, kTokensPerBlock, groups), groups_(groups), random_(seed) {
    for (auto& text : texts_) {
      for (int i = 0; i < 400; ++i) text.push_back(static_cast<int32_t>(random_() % 50));
    }
    // Two of them part only after a while.
    std::copy_n(texts_[0].begin(), 150, texts_[1].begin());
  }

  void run(int num_operations) {
    for (int i = 0; i < num_operations; ++i) {
      operate();
      REQUIRE(cache_.num_free() + cache_.num_used() + cache_.num_cached() == cache_.num_blocks());
      if (i % 16 == 0) cache_.check_integrity();
    }
    live_.clear();
    while (retired_ < submitted_) cache_.step_retired(++retired_);
    CHECK(cache_.num_used() == 0);
    cache_.clear_prefixes();
    CHECK(cache_.num_free() == cache_.num_blocks());
    cache_.check_integrity();
    CHECK(num_matched_ > 0);
    CHECK((num_left_ > 0) == (groups_.num_windowed > 0));
  }

 private:
  void operate() {
    switch (random_() % 10) {
      case 0:
        return begin();
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        return live_.empty() ? void() : compute(live_[random_() % live_.size()]);
      case 6:
        if (live_.size() > 4) live_.erase(live_.begin() + random_() % live_.size());
        return;
      case 7:
        return live_.empty() ? void() : extend(live_[random_() % live_.size()]);
      case 8:
        if (submitted_ < retired_ + 2) cache_.step_submitted(++submitted_);
        return;
      default:
        if (retired_ < submitted_) cache_.step_retired(++retired_);
    }
  }

  void begin() {
    Live fresh;
    const auto& text = texts_[random_() % texts_.size()];
    const auto length = static_cast<ptrdiff_t>(1 + random_() % text.size());
    fresh.token_ids.assign(text.begin(), text.begin() + length);
    // Some end in a way of their own.
    if (random_() % 2 == 0) fresh.token_ids.back() = 1000 + static_cast<int32_t>(random_() % 1000);
    fresh.lease = cache_.match(0, fresh.token_ids, static_cast<int32_t>(length) - 1);
    fresh.num_computed = fresh.lease.length() * kTokensPerBlock;
    num_matched_ += fresh.num_computed;
    check(fresh);
    live_.push_back(std::move(fresh));
  }

  void extend(Live& one) {
    if (one.num_computed % kTokensPerBlock != 0 ||
        one.lease.length() * kTokensPerBlock != one.num_computed)
      return;
    const auto all = static_cast<int32_t>(one.token_ids.size());
    one.num_computed += cache_.extend_match(0, one.token_ids, all - 1, one.lease);
    check(one);
  }

  void compute(Live& one) {
    const auto all = static_cast<int32_t>(one.token_ids.size());
    const int32_t end = std::min(all, one.num_computed + static_cast<int32_t>(random_() % 60));
    if (!cache_.grow(one.lease, end)) {
      // Of windowed groups all can be evicted that no lease holds.
      if (groups_.num_full == 0) REQUIRE(cache_.num_missing_blocks(one.lease, end) > 0);
      if (live_.size() > 1) live_.erase(live_.begin() + random_() % live_.size());
      return;
    }
    check(one);
    for (int32_t place = one.num_computed / kTokensPerBlock; place < one.lease.length(); ++place) {
      for (int32_t group = 0; group < groups_.num_groups(); ++group) {
        written_[one.lease.block(place, group)] = content(one, place, end, group);
      }
    }
    one.num_computed = end;
    if (random_() % 8 != 0) cache_.publish(0, one.token_ids, end, one.lease);
    const int32_t before = one.lease.first_windowed();
    cache_.leave_window(one.lease, end);
    num_left_ += one.lease.first_windowed() - before;
  }

  // What the block holds when the tokens before `end` are computed.
  std::vector<int32_t> content(const Live& one, int32_t place, int32_t end, int32_t group) const {
    const auto last = one.token_ids.begin() + std::min(end, (place + 1) * kTokensPerBlock);
    std::vector<int32_t> out(one.token_ids.begin(), last);
    out.push_back(-1 - group);
    return out;
  }

  // Everything is there that the next token sees.
  void check(const Live& one) {
    const auto needed =
        static_cast<int32_t>(groups_.first_needed(one.num_computed)) / kTokensPerBlock;
    for (int32_t place = 0; place * kTokensPerBlock < one.num_computed; ++place) {
      for (int32_t group = 0; group < groups_.num_groups(); ++group) {
        const int32_t block = one.lease.block(place, group);
        if (groups_.is_windowed(group) && place < needed) continue;
        REQUIRE(block != kNoBlock);
        REQUIRE(written_.at(block) == content(one, place, one.num_computed, group));
      }
    }
  }

  KvCache cache_;
  const KvGroups groups_;
  std::mt19937 random_;
  std::array<std::vector<int32_t>, 4> texts_;
  std::vector<Live> live_;
  std::map<int32_t, std::vector<int32_t>> written_;  // by block
  uint64_t submitted_ = 0;
  uint64_t retired_ = 0;
  int64_t num_matched_ = 0;
  int64_t num_left_ = 0;
};

}  // namespace

TEST_CASE("kv cache accounting is exact after a random walk of 10,000 operations") {
  const KvGroups groups = GENERATE(KvGroups{}, KvGroups{.num_full = 3},
                                   KvGroups{.num_full = 1, .num_windowed = 1, .window = 20},
                                   KvGroups{.num_full = 1, .num_windowed = 4, .window = 90},
                                   KvGroups{.num_full = 0, .num_windowed = 1, .window = 1},
                                   KvGroups{.num_full = 0, .num_windowed = 2, .window = 33},
                                   KvGroups{.num_full = 2, .num_windowed = 1, .window = 5});
  const int32_t num_blocks = GENERATE(300, 900);
  INFO(groups.num_full << " full, " << groups.num_windowed << " of window " << groups.window << ", "
                       << num_blocks << " blocks");
  Walk(num_blocks, groups, 7).run(10000);
}

}  // namespace tgi::kv_walk_test
