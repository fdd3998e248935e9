// Which adapters are on the device: the books stay exact whatever happens, nothing in use leaves,
// and everybody has a turn.
#include "engine/sched/adapter_pool.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/catch.h"

namespace tgi::adapter_pool_test {
namespace {

using Kind = AdapterPool::Kind;

Clock::time_point at(int milliseconds) {
  return Clock::time_point(std::chrono::milliseconds(1'000'000 + milliseconds));
}

AdapterPool make_pool(int64_t memory_bytes, int32_t max_active) {
  return AdapterPool({.memory_bytes = memory_bytes,
                      .max_active = max_active,
                      .cycle_time = std::chrono::milliseconds(100)});
}

// Loads what is to be loaded at once. The users that may run.
std::vector<uint64_t> settle(AdapterPool& pool, Clock::time_point now) {
  std::vector<uint64_t> out;
  while (const auto change = pool.next_change(now)) {
    if (change->kind != Kind::kLoad) continue;
    const auto users = pool.loaded(change->adapter, now);
    out.insert(out.end(), users.begin(), users.end());
  }
  pool.check_integrity();
  return out;
}

TEST_CASE("an adapter is loaded for its first user, and there for the next") {
  AdapterPool pool = make_pool(100, 4);
  CHECK(pool.enter(7, 60, 1, at(0)) == 0);
  CHECK(settle(pool, at(0)) == std::vector<uint64_t>{1});
  CHECK(pool.enter(7, 60, 2, at(1)) > 0);
  CHECK(pool.used_bytes() == 60);
  pool.leave(7, 1);
  pool.leave(7, 2);
  CHECK(settle(pool, at(2)).empty());
  CHECK(pool.used_bytes() == 60);  // until another one wants its place
}

TEST_CASE("the least recently used adapter makes room, never one in use") {
  AdapterPool pool = make_pool(100, 4);
  (void)pool.enter(1, 40, 10, at(0));
  (void)pool.enter(2, 40, 20, at(1));
  settle(pool, at(1));
  pool.leave(1, 10);
  CHECK(pool.enter(3, 40, 30, at(2)) == 0);
  CHECK(settle(pool, at(2)) == std::vector<uint64_t>{30});
  CHECK_FALSE(pool.standing(1).is_active);
  CHECK(pool.standing(2).is_active);
  CHECK(pool.enter(1, 40, 11, at(3)) == 0);
  CHECK(settle(pool, at(3)).empty());  // both are in use
  pool.leave(2, 20);
  CHECK(settle(pool, at(4)) == std::vector<uint64_t>{11});
}

TEST_CASE("places are as scarce as memory") {
  AdapterPool pool = make_pool(100, 1);
  (void)pool.enter(1, 1, 10, at(0));
  settle(pool, at(0));
  CHECK(pool.enter(2, 1, 20, at(1)) == 0);
  CHECK(settle(pool, at(1)).empty());
  pool.leave(1, 10);
  CHECK(settle(pool, at(2)) == std::vector<uint64_t>{20});
}

TEST_CASE("an adapter that had its turn takes no new users while another one waits") {
  AdapterPool pool = make_pool(100, 1);
  (void)pool.enter(1, 50, 10, at(0));
  settle(pool, at(0));
  (void)pool.enter(2, 50, 20, at(1));
  settle(pool, at(50));
  CHECK_FALSE(pool.is_yielding(1));
  CHECK(pool.enter(1, 50, 11, at(60)) > 0);
  settle(pool, at(150));
  CHECK(pool.is_yielding(1));
  CHECK(pool.enter(1, 50, 12, at(151)) == 0);
  pool.put_back(1, 11);  // it had not begun
  pool.leave(1, 10);
  CHECK(settle(pool, at(160)) == std::vector<uint64_t>{20});
  // And its own next turn comes.
  settle(pool, at(300));
  CHECK(pool.is_yielding(2));
  pool.leave(2, 20);
  auto users = settle(pool, at(310));
  std::ranges::sort(users);
  CHECK(users == std::vector<uint64_t>{11, 12});
}

TEST_CASE("without anybody waiting nobody yields") {
  AdapterPool pool = make_pool(100, 1);
  (void)pool.enter(1, 50, 10, at(0));
  settle(pool, at(0));
  settle(pool, at(10'000));
  CHECK_FALSE(pool.is_yielding(1));
}

TEST_CASE("a load that fails tells its users and leaves nothing") {
  AdapterPool pool = make_pool(100, 2);
  (void)pool.enter(1, 50, 10, at(0));
  (void)pool.enter(1, 50, 11, at(0));
  const auto change = pool.next_change(at(0));
  REQUIRE(change.has_value());
  pool.leave(1, 11);  // gone meanwhile
  CHECK(pool.load_failed(1) == std::vector<uint64_t>{10});
  pool.check_integrity();
  CHECK(pool.used_bytes() == 0);
  CHECK(pool.num_active() == 0);
  CHECK(pool.enter(1, 50, 12, at(1)) == 0);
  CHECK(settle(pool, at(1)) == std::vector<uint64_t>{12});
}

TEST_CASE("a pinned adapter stays, and what it leaves is what others can have") {
  AdapterPool pool = make_pool(100, 3);
  CHECK(pool.pin(1, 70).empty());
  settle(pool, at(0));
  CHECK(pool.standing(1).is_active);
  CHECK_FALSE(pool.can_ever_hold(2, 31));
  CHECK(pool.can_ever_hold(2, 30));
  (void)pool.enter(2, 30, 20, at(1));
  settle(pool, at(1));
  pool.leave(2, 20);
  (void)pool.enter(3, 30, 30, at(2));
  CHECK(settle(pool, at(2)) == std::vector<uint64_t>{30});
  CHECK(pool.standing(1).is_active);
  pool.unpin(1);
  (void)pool.enter(4, 90, 40, at(3));
  pool.leave(3, 30);
  CHECK(settle(pool, at(4)) == std::vector<uint64_t>{40});
}

TEST_CASE("a pinned adapter has its room for its users, however little is left for others") {
  AdapterPool pool = make_pool(100, 2);
  CHECK(pool.pin(1, 60).empty());
  CHECK(pool.can_ever_hold(1, 60));
  settle(pool, at(0));
  CHECK(pool.enter(1, 60, 10, at(1)) > 0);
  CHECK(pool.pin(2, 40).empty());
  CHECK(pool.can_ever_hold(2, 40));
  CHECK_FALSE(pool.has_place_beside_pinned());
  CHECK_FALSE(pool.can_ever_hold(3, 0));
}

TEST_CASE("who waits for what fits no more beside pinned ones is let go") {
  AdapterPool pool = make_pool(100, 3);
  (void)pool.enter(1, 60, 10, at(0));
  settle(pool, at(0));
  CHECK(pool.enter(2, 60, 20, at(1)) == 0);
  CHECK(pool.enter(3, 30, 30, at(1)) == 0);
  CHECK(pool.take_hopeless().empty());
  // 1 runs on; 2 would have to wait for ever, and 3 for it.
  CHECK(pool.pin(4, 70).empty());
  CHECK(pool.take_hopeless() == std::vector<uint64_t>{20});
  CHECK(pool.take_hopeless().empty());
  CHECK(settle(pool, at(1)) == std::vector<uint64_t>{30});
  CHECK(pool.standing(2).num_waiting == 0);
  pool.leave(2, 20);
  pool.leave(1, 10);
  settle(pool, at(2));
  CHECK(pool.standing(4).is_active);
  pool.check_integrity();
}

TEST_CASE("a user that goes while it waits is not waited for") {
  AdapterPool pool = make_pool(100, 1);
  (void)pool.enter(1, 10, 10, at(0));
  settle(pool, at(0));
  (void)pool.enter(2, 10, 20, at(1));
  pool.leave(2, 20);
  pool.check_integrity();
  settle(pool, at(1000));
  CHECK_FALSE(pool.is_yielding(1));
}

TEST_CASE("a thousand adapters in turn, fifty places: all are served, and evenly") {
  AdapterPool pool = make_pool(50 * 100, 50);
  std::mt19937 random(1);
  struct User {
    int64_t adapter;
    int came;
    int begins = -1;
  };
  std::map<uint64_t, User> users;
  std::multimap<int, uint64_t> ends;
  int now = 0;
  const auto begin = [&](uint64_t user) {
    users[user].begins = now;
    ends.emplace(now + 20 + static_cast<int>(random() % 20), user);
  };
  uint64_t next = 1;
  for (; now < 40'000; ++now) {
    if (now < 30'000) {
      const int64_t adapter = 1 + now % 1000;
      users[next] = {adapter, now};
      if (pool.enter(adapter, 100, next, at(now)) > 0) begin(next);
      ++next;
    }
    while (!ends.empty() && ends.begin()->first <= now) {
      const uint64_t user = ends.begin()->second;
      ends.erase(ends.begin());
      pool.leave(users[user].adapter, user);
    }
    for (const uint64_t user : settle(pool, at(now))) begin(user);
  }
  std::vector<int> waits;
  for (const auto& [id, user] : users) {
    REQUIRE(user.begins >= 0);
    waits.push_back(user.begins - user.came);
  }
  std::ranges::sort(waits);
  CHECK(waits.back() <= 3 * std::max(waits[waits.size() / 2], 20));
}

TEST_CASE("the books of the pool stay exact through anything") {
  std::mt19937 random(2);
  AdapterPool pool = make_pool(1000, 6);
  std::map<uint64_t, int64_t> users;  // to their adapters
  std::set<uint64_t> running;
  std::vector<AdapterPool::Change> loading;
  std::map<int32_t, int64_t> places;
  uint64_t next = 1;
  const auto size_of = [](int64_t adapter) { return 50 + adapter * 37 % 300; };
  for (int step = 0; step < 10'000; ++step) {
    const auto now = at(step * 7);
    switch (random() % 7) {
      case 6: {
        const auto adapter = static_cast<int64_t>(1 + random() % 20);
        if (const auto place = pool.evict(adapter)) {
          REQUIRE(places.at(*place) == adapter);
          places.erase(*place);
          for (const uint64_t user : running) REQUIRE(users.at(user) != adapter);
        }
        break;
      }
      case 0:
      case 1: {
        const auto adapter = static_cast<int64_t>(1 + random() % 20);
        if (!pool.can_ever_hold(adapter, size_of(adapter))) break;
        const int32_t place = pool.enter(adapter, size_of(adapter), next, now);
        users[next] = adapter;
        if (place > 0) {
          running.insert(next);
          REQUIRE(places.at(place) == adapter);
        }
        ++next;
        break;
      }
      case 2:
      case 3: {
        if (users.empty()) break;
        const auto user = std::next(users.begin(), static_cast<int>(random() % users.size()));
        pool.leave(user->second, user->first);
        running.erase(user->first);
        users.erase(user);
        break;
      }
      case 4: {
        if (loading.empty()) break;
        const auto change = loading.back();
        loading.pop_back();
        const bool works = random() % 4 != 0;
        const auto answered =
            works ? pool.loaded(change.adapter, now) : pool.load_failed(change.adapter);
        for (const uint64_t user : answered) {
          REQUIRE(users.at(user) == change.adapter);
          if (works) {
            running.insert(user);
          } else {
            users.erase(user);
          }
        }
        if (works) places[change.place] = change.adapter;
        break;
      }
      case 5: {
        const auto adapter = static_cast<int64_t>(1 + random() % 20);
        if (random() % 2 == 0) {
          pool.unpin(adapter);
        } else if (pool.can_ever_hold(adapter, size_of(adapter))) {
          for (const uint64_t user : pool.pin(adapter, size_of(adapter))) running.insert(user);
        }
        break;
      }
    }
    for (const uint64_t user : pool.take_hopeless()) users.erase(user);
    while (const auto change = pool.next_change(now)) {
      if (change->kind == Kind::kLoad) loading.push_back(*change);
      if (change->kind == Kind::kEvict) {
        REQUIRE(places.at(change->place) == change->adapter);
        places.erase(change->place);
        for (const uint64_t user : running) REQUIRE(users.at(user) != change->adapter);
      }
      if (change->kind != Kind::kYield) continue;
      for (auto user = running.begin(); user != running.end();) {
        const bool goes_back = users.at(*user) == change->adapter && random() % 2 == 0;
        if (goes_back) pool.put_back(change->adapter, *user);
        user = goes_back ? running.erase(user) : std::next(user);
      }
    }
    pool.check_integrity();
  }
  CHECK(next > 1500);
}

}  // namespace
}  // namespace tgi::adapter_pool_test
