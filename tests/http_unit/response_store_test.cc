// The store of answers: its limits, what it counts, and items by their ids.
#include "cmd/http/response_store.h"

#include <string>
#include <utility>

#include "tests/catch.h"

namespace tgi::http {
namespace {

using Put = ResponseStore::Put;

StoredResponse stored(ResponseStore& store,
                      const std::string& id,
                      std::vector<StoredItemsPtr> before = {},
                      size_t num_bytes = 10) {
  StoredResponse out{.id = id,
                     .answer = store.make_items(OrderedJson::array({{{"id", id}}})),
                     .turns = std::move(before)};
  const OrderedJson item = {{"id", "in_" + id}, {"text", std::string(num_bytes, 'a')}};
  out.turns.push_back(store.make_items(OrderedJson::array({item})));
  out.turns.push_back(store.make_items(OrderedJson::array({{{"id", "out_" + id}}})));
  return out;
}

}  // namespace

TEST_CASE("the answer that was used longest ago makes room") {
  ResponseStore store(2, 1 << 20);
  store.put(stored(store, "a"));
  store.put(stored(store, "b"));
  CHECK(store.find("a") != nullptr);
  store.put(stored(store, "c"));
  CHECK(store.find("b") == nullptr);
  CHECK(store.find("a") != nullptr);
  CHECK(store.find("c") != nullptr);
  CHECK(store.erase("a"));
  CHECK_FALSE(store.erase("a"));
  CHECK(store.size() == 1);
}

TEST_CASE("bytes are counted once for all who share them, until nobody has them") {
  ResponseStore store(100, 3000);
  CHECK(store.num_bytes() == 0);
  store.put(stored(store, "a", {}, 1000));
  const int64_t one = store.num_bytes();
  CHECK(one > 1000);
  store.put(stored(store, "b", store.find("a")->turns, 10));
  CHECK(store.num_bytes() < 2 * one);
  CHECK(store.erase("a"));
  CHECK(store.num_bytes() > 1000);  // b goes on from it
  const StoredResponsePtr held = store.find("b");
  CHECK(store.erase("b"));
  CHECK(store.num_bytes() > 1000);  // a request is under way
  store.put(stored(store, "c", {}, 1500));
  CHECK(store.find("c") != nullptr);
  CHECK(store.put(stored(store, "d", {}, 5000)) == Put::kTooLarge);
  CHECK(store.find("d") == nullptr);
  CHECK(store.find("c") != nullptr);  // nothing made room for what can't stay
}

TEST_CASE("what is still made is never put out, and what has no room beside it is not begun") {
  const auto running = [](ResponseStore& store, const std::string& id, size_t num_bytes = 10) {
    StoredResponse out = stored(store, id, {}, num_bytes);
    out.is_running = true;
    return out;
  };
  ResponseStore few(2, 1 << 20);
  CHECK(few.put(running(few, "a")) == Put::kKept);
  for (const char* id : {"b", "c", "d"}) CHECK(few.put(stored(few, id)) == Put::kKept);
  CHECK(few.find("a") != nullptr);
  CHECK(few.find("c") == nullptr);
  CHECK(few.put(running(few, "e")) == Put::kKept);
  CHECK(few.find("d") == nullptr);
  CHECK(few.put(running(few, "f")) == Put::kNoRoom);
  CHECK(few.put(stored(few, "g")) == Put::kNoRoom);
  CHECK(few.size() == 2);
  few.settle(stored(few, "a"));
  CHECK(few.find("a") != nullptr);
  CHECK(few.put(running(few, "f")) == Put::kKept);
  CHECK(few.find("a") == nullptr);

  ResponseStore small(100, 3000);
  CHECK(small.put(stored(small, "a", {}, 500)) == Put::kKept);
  CHECK(small.put(running(small, "b", 2000)) == Put::kKept);
  CHECK(small.put(running(small, "c", 2000)) == Put::kNoRoom);
  CHECK(small.find("a") != nullptr);  // it was not put out for nothing
  CHECK(small.put(running(small, "d", 700)) == Put::kKept);
  CHECK(small.find("a") == nullptr);
  small.settle(stored(small, "d", {}, 5000));
  CHECK(small.find("d") == nullptr);
  CHECK(small.find("b") != nullptr);
}

TEST_CASE("turns that several share count once for the room that is looked for") {
  ResponseStore store(100, 3000);
  CHECK(store.put(stored(store, "a", {}, 2000)) == Put::kKept);
  const std::vector<StoredItemsPtr> turns = store.find("a")->turns;
  for (const char* id : {"b", "c"}) {
    StoredResponse running = stored(store, id, turns);
    running.is_running = true;
    CHECK(store.put(std::move(running)) == Put::kKept);
  }
}

TEST_CASE("events of an answer count as long as somebody has them") {
  ResponseStore store(100, 3000);
  StoredResponse running = stored(store, "a");
  running.is_running = true;
  running.events = store.make_events();
  const std::shared_ptr<EventLog> events = running.events;
  CHECK(store.put(std::move(running)) == Put::kKept);
  const int64_t before = store.num_bytes();
  events->add(std::string(2000, 'e'));
  CHECK(store.num_bytes() == before + 2000);
  StoredResponse other = stored(store, "b", {}, 1500);
  other.is_running = true;
  CHECK(store.put(std::move(other)) == Put::kNoRoom);
  CHECK(store.erase("a"));
  CHECK(store.num_bytes() == 2000);
}

TEST_CASE("nothing is left when the last is gone") {
  ResponseStore store(100, 1 << 20);
  store.put(stored(store, "a"));
  store.put(stored(store, "b", store.find("a")->turns));
  CHECK(store.erase("b"));
  CHECK(store.erase("a"));
  CHECK(store.num_bytes() == 0);
}

TEST_CASE("items are found by their ids, those of the answers before as well") {
  ResponseStore store(100, 1 << 20);
  store.put(stored(store, "a"));
  store.put(stored(store, "b", store.find("a")->turns));
  for (const char* id : {"in_a", "out_a", "in_b", "out_b"}) {
    const auto item = store.find_item(id);
    REQUIRE(item);
    CHECK((*item)["id"] == id);
  }
  CHECK_FALSE(store.find_item("a\"b"));
  CHECK_FALSE(store.find_item("in_c"));
}

TEST_CASE("a limit of none keeps none") {
  CHECK_FALSE(ResponseStore(0, 100).keeps());
  CHECK_FALSE(ResponseStore(1, 0).keeps());
  ResponseStore store(0, 100);
  store.put(stored(store, "a"));
  CHECK(store.size() == 0);
}

}  // namespace tgi::http
