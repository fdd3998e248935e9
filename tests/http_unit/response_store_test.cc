// The store of answers: its limits, what it counts, and items by their ids.
#include "cmd/http/response_store.h"

#include <string>
#include <utility>

#include "tests/catch.h"

namespace tgi::http {
namespace {

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
  store.put(stored(store, "d", {}, 5000));
  CHECK(store.size() == 0);  // more than there may be
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
